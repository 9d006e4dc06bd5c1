"""One call for vectors, a transcript or speech: its entry in the cost ledger, and the middleware around requests."""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import TypeVar

from trunkline.contracts.costs.messages import CostEntry
from trunkline.contracts.models.adapter import AskModel, Finish, ModelEvent, ModelRequest, Text
from trunkline.errors import ErrorCode, ModelError
from trunkline.runtime.ability_ledger import AbilityLedger, AbilityRecord, Amount
from trunkline.telemetry import semconv
from trunkline.workers.monitor.model_call import model_attributes

T = TypeVar("T")

SendThrough = Callable[[ModelRequest, AskModel], AsyncIterator[ModelEvent]]


class AbilityCall:
    """A call that ``request`` describes to the middleware around requests: its model, sender, purpose and text.

    Middleware sees an empty ``Text`` for each reply, and a ``Finish`` with the usage and the cost. It may refuse the
    call, and cannot change the text.
    """

    def __init__(
        self,
        operation: str,
        vendor: str,
        request: ModelRequest,
        estimate: Amount,
        ledger: AbilityLedger,
    ) -> None:
        self.operation = operation
        self.request = request
        self._vendor = vendor
        self._estimate = estimate
        self._ledger = ledger
        self._record: AbilityRecord | None = None
        self._end: CostEntry | None = None

    @property
    def label(self) -> str:
        """``adapter/model``, or ``adapter`` for its default model."""
        request = self.request
        return f"{request.adapter}/{request.model}" if request.model else request.adapter

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of the call's span."""
        request = self.request
        model = model_attributes(request.adapter, self._vendor, request.model)
        return {semconv.GEN_AI_OPERATION: self.operation, **model, semconv.PURPOSE: request.purpose}

    def finish(self, model: str, counted: Amount) -> None:
        """Note the end of the call at the vendor."""
        assert self._record is not None  # called while the call is sent
        self._end = self._record.finish(model, counted)

    @property
    def entry(self) -> CostEntry:
        """The entry of the ledger, after the last reply."""
        assert self._end is not None  # else ``replies`` has raised
        return self._end

    async def replies(
        self, send_through: SendThrough, send: Callable[["AbilityCall"], AsyncGenerator[T]]
    ) -> AsyncGenerator[T]:
        """Yield the replies of ``send``, which calls ``finish``. Raises ModelError and BusError."""
        waiting: deque[T] = deque()

        async def proceed(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            async with self._recorded(request) as self._record, aclosing(send(self)) as replies:
                async for reply in replies:
                    waiting.append(reply)
                    yield Text("")
            yield self._finish()

        async with aclosing(send_through(self.request, proceed)) as events:  # type: ignore[type-var]
            async for _ in events:
                while waiting:
                    yield waiting.popleft()

    def _recorded(self, request: ModelRequest) -> AbilityRecord:
        return self._ledger.request(request, self._vendor, self.operation, self._estimate)

    def _finish(self) -> Finish:
        if self._end is None:
            raise ModelError(ErrorCode.PROVIDER_ERROR, "bad_response", "the call has no end")
        return Finish(usage=self._end.usage, model=self._end.model, cost=self._end.cost)
