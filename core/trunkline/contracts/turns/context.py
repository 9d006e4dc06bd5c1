"""The context that stands before a model besides the conversation, and the middleware around a turn."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.memory.messages import MemoryFile
from trunkline.contracts.turns.messages import StatusShown, TurnRequested


@dataclass(frozen=True, slots=True)
class TurnInfo:
    """A turn about to run or running. ``step`` counts model calls; ``input_tokens`` are those of the last one.

    ``model`` is ``adapter/model`` that answers; "" while it is being chosen, or when there is none. ``history`` is the
    conversation before the turn. ``files`` are what context sources name in their own ``files``, as memory has them
    now, by the names that they were asked for by; left out is what is absent, no text, or still as memory began with
    it, but for the instructions of ``AGENT.md``. ``window`` is how many tokens the model takes in.
    """

    request: TurnRequested
    block: BlockConfig
    memory: Memory
    step: int = 0
    input_tokens: int = 0
    model: str = ""
    files: Mapping[str, MemoryFile] = field(default_factory=dict)
    history: tuple[Message, ...] = ()
    window: int = 0


@dataclass(frozen=True, slots=True)
class ContextPart:
    """Text for the model from somewhere. It is marked as data with ``source`` as its name.

    ``trusted`` is for words of the plugin's own only: they are not marked. ``by_owner`` is for files of which every
    line is the owner's: they are marked as that, and the model may follow them.

    ``priority`` decides what stands earlier and what is cut later (higher first). ``share`` is the part of the budget
    (0 to 1) that it has for sure; where room is left it gets more. ``rest`` is a sentence that says where the whole is
    read when it had to be cut. A part that is ``changing`` from turn to turn is told just before the person's
    message, apart from the rest, which a provider then need not read again.
    """

    source: str
    text: str
    trusted: bool = False
    by_owner: bool = False
    priority: int = 50
    share: float = 0.25
    rest: str = ""
    changing: bool = False


@dataclass(frozen=True, slots=True)
class ContextGap:
    """A part that a source could not give this time, and the reason. The turn's trace says so; no model is told."""

    source: str
    reason: str


class ContextSource(Protocol):
    """Contributes context once, at the start of a turn.

    One that has an attribute ``files`` is given those files of memory in ``TurnInfo.files``, read together with all
    that the turn needs. The paths are like those of ``Memory``: ``/AGENT.md`` is the whole memory's, ``notes.md`` the
    block's.
    """

    name: str

    async def __call__(self, turn: TurnInfo) -> Sequence[ContextPart | StatusShown | ContextGap]:
        """The parts for this turn, what people may be shown, and what is missing. An exception or more than 5 seconds
        leaves the source out; the turn goes on and its trace says so."""
        ...


class TurnMiddleware(Protocol):
    """Stands around a whole turn, on every owner that runs it."""

    async def __call__(self, turn: TurnInfo, proceed: Callable[[], Awaitable[None]]) -> None: ...
