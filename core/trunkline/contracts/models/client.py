"""The models of this installation over the bus: the ``Completer`` of tools and background work."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import anyio
import msgspec

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.models.messages import Complete, Completion
from trunkline.contracts.models.subjects import COMPLETE
from trunkline.errors import CompletionError, ErrorCode
from trunkline_bus import Bus, BusError, CallTimeout, NoResponders, RemoteFault, Scope, new_id

IDLE_TIMEOUT = 5.0
"""Seconds without a message after which the monitor that was called counts as dead."""

TRIES = 3
PAUSE = 0.5
"""TRIES is the number of attempts if no monitor answers or the monitor dies; PAUSE is the seconds between them."""


class CompleterBase(ABC):
    """A ``Completer`` that builds and checks the request. Subclasses send it.

    Guarantees: ``ask`` receives only requests that a monitor can decode.

    Not guaranteed: that the model is called only once, as for ``Completer``.
    """

    async def complete(
        self,
        prompt: str | Sequence[Message],
        *,
        purpose: str = "tool",
        model: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        max_cost: int | None = None,
        timeout: float | None = None,
        reasoning: bool = True,
    ) -> Completion:
        """Return the answer to a text or to messages; see ``Completer.complete``. Raises CompletionError as stated
        there.
        """
        question = Complete(
            messages=_messages(prompt),
            purpose=purpose,
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            max_cost=max_cost,
            timeout=timeout,
            reasoning=reasoning,
        )
        return await self.ask(_checked(question))

    @abstractmethod
    async def ask(self, question: Complete) -> Completion:
        """Return the answer to a request. Raises CompletionError as ``Completer.complete`` does."""


class BlockCompleter(CompleterBase):
    """The ``Completer`` of one block. ``actor`` is the caller; ``conversation`` and ``turn`` are those of the
    requests, if any. ``budget_turn`` is as in ``ModelRequest``.
    """

    def __init__(
        self,
        bus: Bus,
        block: str,
        *,
        actor: str = "",
        conversation: str | None = None,
        turn: str | None = None,
        budget_turn: str = "",
    ) -> None:
        self._bus = bus
        self._actor = actor
        self._budget_turn = budget_turn
        self._scope = Scope(block=block, conversation=conversation, turn=turn)

    async def ask(self, question: Complete) -> Completion:
        """Send the request to a monitor, and to another one if the first has died. Raises CompletionError
        ``engine_unavailable`` if no monitor answers, else with the code that the monitor returned.
        """
        question = msgspec.structs.replace(question, actor=self._actor, budget_turn=self._budget_turn)
        for last in (*(False,) * (TRIES - 1), True):
            try:
                return await self._ask_once(question)
            except (NoResponders, CallTimeout, _MonitorStopping) as error:
                if last:
                    raise _unavailable() from error
                await anyio.sleep(PAUSE)
            except BusError as error:
                raise _unavailable() from error
        raise AssertionError("the last try returns or raises")

    async def _ask_once(self, question: Complete) -> Completion:
        try:
            async with self._bus.call_streaming(
                COMPLETE, question, scope=self._scope, idle_timeout=IDLE_TIMEOUT
            ) as answers:
                async for answer in answers:
                    return answer
        except RemoteFault as fault:
            if fault.code == ErrorCode.ENGINE_UNAVAILABLE:
                raise _MonitorStopping from fault
            raise CompletionError(fault.code, fault.message) from fault
        raise _MonitorStopping


class _MonitorStopping(Exception):
    """The monitor that was called is stopping; another one may answer."""


def _messages(prompt: str | Sequence[Message]) -> tuple[Message, ...]:
    """Return a text as a user's message; return messages unchanged."""
    if isinstance(prompt, str):
        return (Message(id=new_id("msg"), role="user", content=prompt),)
    return tuple(prompt)


def _checked(request: Complete) -> Complete:
    """Return the request if a monitor can decode it. Raise CompletionError otherwise."""
    try:
        return msgspec.convert(msgspec.to_builtins(request), Complete)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise CompletionError(ErrorCode.INVALID_REQUEST, f"The model cannot be asked so: {error}.") from error


def _unavailable() -> CompletionError:
    code = ErrorCode.ENGINE_UNAVAILABLE
    return CompletionError(code, "No model can be asked right now. Try again.")
