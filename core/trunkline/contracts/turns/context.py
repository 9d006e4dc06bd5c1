"""Context sources, which give the model text besides the conversation, and the middleware around a turn."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.memory.files import MemoryFile
from trunkline.contracts.turns.feed_messages import StatusShown
from trunkline.contracts.turns.messages import TurnRequested


@dataclass(frozen=True, slots=True)
class TurnInfo:
    """A turn about to run or running. ``step`` counts model calls; ``input_tokens`` are the input tokens of the last
    one.

    ``model`` is the ``adapter/model`` that answers; "" while the model is being chosen, or if there is none.
    ``history`` is the conversation before the turn. ``files`` holds the current content of the files that context
    sources list in their ``files`` attribute, keyed by the path they list. A file is left out if it is absent, is not
    text, or is unchanged since memory created it; the instructions in ``AGENT.md`` are always included. ``memory`` and
    ``files`` have what the permissions of the sender include, and the instructions and settings of the agents.
    ``window`` is the model's context window in tokens.
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
    """Text for the model from a context source. The text is marked as data, with ``source`` as its name.

    ``trusted`` leaves the text unmarked; use it only for the plugin's own words. ``by_owner`` marks the text as the
    owner's, which the model may follow; use it only for files of which the owner wrote every line.

    ``priority`` decides the order: parts with a higher priority stand earlier and are cut later. ``share`` is the
    part of the budget (0 to 1) that is reserved for this part; if room is left, the part gets more. ``rest`` is a
    sentence that tells the model where to read the complete text if the part is cut. ``changing`` marks a part that
    changes from turn to turn: it is placed just before the person's message, apart from the other parts, so that the
    provider can cache those.
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
    """A part that a source could not provide this time, and the reason. The turn's trace records the gap; the model
    does not see it.
    """

    source: str
    reason: str


class ContextSource(Protocol):
    """Contributes context once, at the start of a turn.

    A source with the attribute ``files`` receives those files of memory in ``TurnInfo.files``; they are read in one
    request with everything else that the turn needs. The paths are those of ``Memory``: ``/AGENT.md`` is a file of the
    whole memory, ``notes.md`` a file of the block.

    Guarantees: the sources of a turn run concurrently. Parts of the same priority keep the order of the sources.

    Not guaranteed: that the model receives a whole part, because parts are cut to the budget. A turn that is run again
    after a crash may ask its sources again.
    """

    name: str

    async def __call__(self, turn: TurnInfo) -> Sequence[ContextPart | StatusShown | ContextGap]:
        """Return the parts for this turn, statuses for people, and gaps. A source that takes more than 5 seconds is
        cancelled, and the turn runs without its parts.

        Raises:
            Exception: the turn runs without the parts of this source. The log has the exception, and the turn's trace
                has a gap.
        """
        ...


class TurnMiddleware(Protocol):
    """Wraps a whole turn, on every worker that runs the turn.

    Guarantees: the middleware of the first plugin is the outermost.

    Not guaranteed: that a turn passes once. It passes again after a crash, and each time it continues after an
    approval.
    """

    async def __call__(self, turn: TurnInfo, proceed: Callable[[], Awaitable[None]]) -> None:
        """Call ``await proceed()`` once, which runs the turn.

        Raises:
            Exception: the attempt failed. The monitor logs the exception and runs the turn again from its journal.
                After three failed attempts the turn ends with the code ``internal``. Attempts that fail because the bus
                or another worker is unavailable do not count.
        """
        ...
