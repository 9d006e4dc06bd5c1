"""What is put before the model besides the conversation, and what may stand around a turn."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from trunkline.abc.memory import Memory
from trunkline.messages.blocks import BlockConfig
from trunkline.messages.turn import TurnRequested


@dataclass(frozen=True, slots=True)
class TurnInfo:
    """A turn about to run or running. ``step`` counts model calls; ``input_tokens`` are those of the last one.

    ``model`` is ``adapter/model`` that answers; "" while it is being chosen, or when there is none.
    """

    request: TurnRequested
    block: BlockConfig
    memory: Memory
    step: int = 0
    input_tokens: int = 0
    model: str = ""


@dataclass(frozen=True, slots=True)
class ContextPart:
    """Text for the model from somewhere. It is marked as data with ``source`` as its name, unless ``trusted``."""

    source: str
    text: str
    trusted: bool = False


class ContextSource(Protocol):
    """Contributes context once, at the start of a turn."""

    name: str

    async def __call__(self, turn: TurnInfo) -> Sequence[ContextPart]:
        """The parts for this turn. An exception or more than 5 seconds leaves the source out; the turn goes on."""
        ...


class TurnMiddleware(Protocol):
    """Stands around a whole turn, on every owner that runs it."""

    async def __call__(self, turn: TurnInfo, proceed: Callable[[], Awaitable[None]]) -> None: ...
