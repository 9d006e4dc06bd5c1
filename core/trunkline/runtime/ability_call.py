"""One call for vectors, a transcript or speech: its entry in the cost ledger, and the middleware around requests.

The only way in which the texts of such a call reach an adapter, in the monitor and in memory.
"""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.costs.messages import CostEntry
from trunkline.contracts.models.adapter import Finish, ModelEvent, ModelMiddleware, ModelRequest, Text
from trunkline.errors import ErrorCode, ModelError
from trunkline.runtime.ability_ledger import AbilityLedger, AbilityRecord, Amount
from trunkline.runtime.model_middleware import wrap_with_middleware
from trunkline_bus import new_id

T = TypeVar("T")

Send = Callable[["AbilityCall", tuple[str, ...]], AsyncGenerator[T]]
"""Sends texts to the vendor, calls ``AbilityCall.finish``, and yields the vendor's replies."""


def text_messages(texts: Sequence[str]) -> tuple[Message, ...]:
    """Return the messages that show the texts of a call to middleware, one for each text and in their order."""
    return tuple(Message(id=new_id("msg"), role="user", content=text) for text in texts)


class AbilityCall:
    """A call that ``request`` describes to the middleware around requests: its operation, model, sender, purpose, and
    its texts as ``text_messages``.

    Middleware may change the texts and refuse the call. It sees an empty ``Text`` for each reply, and a ``Finish`` with
    the usage and the cost.
    """

    def __init__(self, vendor: str, request: ModelRequest, estimate: Amount, ledger: AbilityLedger) -> None:
        self.request = request
        self.vendor = vendor
        self._estimate = estimate
        self._ledger = ledger
        self._record: AbilityRecord | None = None
        self._end: CostEntry | None = None

    @property
    def label(self) -> str:
        """``adapter/model``, or ``adapter`` for its default model."""
        request = self.request
        return f"{request.adapter}/{request.model}" if request.model else request.adapter

    def finish(self, model: str, counted: Amount) -> None:
        """Note the end of the call at the vendor."""
        assert self._record is not None  # called while the call is sent
        self._end = self._record.finish(model, counted)

    @property
    def entry(self) -> CostEntry:
        """The entry of the ledger, after the last reply."""
        assert self._end is not None  # else ``replies`` has raised
        return self._end

    async def replies(self, middleware: Sequence[ModelMiddleware], send: Send[T]) -> AsyncGenerator[T]:
        """Yield the replies of ``send``, which receives the texts that the middleware leaves. Raises ModelError and
        BusError.
        """
        waiting: deque[T] = deque()

        async def proceed(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            texts = self._texts(request)
            async with self._recorded(request) as self._record, aclosing(send(self, texts)) as replies:
                async for reply in replies:
                    waiting.append(reply)
                    yield Text("")
            yield self._finish()

        async with aclosing(wrap_with_middleware(middleware, proceed)(self.request)) as events:  # type: ignore[type-var]
            async for _ in events:
                while waiting:
                    yield waiting.popleft()

    def _texts(self, request: ModelRequest) -> tuple[str, ...]:
        """Return the texts of a request. Each reply belongs to a text, so middleware may neither add nor remove one."""
        texts = tuple(message.content for message in request.messages)
        if len(texts) != len(self.request.messages):
            raise ModelError(
                ErrorCode.PROVIDER_ERROR, "refused", "a middleware changed the number of the texts"
            )
        return texts

    def _recorded(self, request: ModelRequest) -> AbilityRecord:
        return self._ledger.request(request, self.vendor, self._estimate)

    def _finish(self) -> Finish:
        if self._end is None:
            raise ModelError(ErrorCode.PROVIDER_ERROR, "bad_response", "the call has no end")
        return Finish(usage=self._end.usage, model=self._end.model, cost=self._end.cost)
