"""Subscribes to the whole feed live, independent of its readers, and measures the longest delay of each turn.

Delays are between two pieces of text of the same answer, and of tools, beyond the time that the tools themselves take.
The time of a model before its first word is its own.

A reader may wait for longer: the scripted model repeats the same words when it is called again, and text that a reader
has is not shown twice. A real model writes other words, and its reader sees them at once.
"""

from dataclasses import dataclass, field

import anyio

from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.turns.feed_messages import (
    FeedItem,
    ReasoningDelta,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolStarted,
)
from trunkline.contracts.turns.subjects import FEED
from trunkline_bus import Bus, ReceivedMessage

Silence = tuple[float, float]
"""When it began and ended, on the clock of the run."""


@dataclass(frozen=True, slots=True)
class _ReceivedItem:
    place: tuple[int, int]
    step: int | None
    at: float


@dataclass(slots=True)
class _Tools:
    """The tools of one step: when the first began, how long they take one after the other, which are under way."""

    began: float
    own: float = 0.0
    calls: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)


class Ear:
    """``silences``: by turn, as above; the first word of a new owner ends one."""

    def __init__(self) -> None:
        self.silences: dict[str, list[Silence]] = {}
        self._last: dict[str, _ReceivedItem] = {}
        self._tools: dict[tuple[str, int], _Tools] = {}

    async def listen(self, bus: Bus) -> None:
        """Listen for as long as the connection lives."""
        await bus.subscribe(FEED, self.hear, limit=1)

    async def hear(self, received: ReceivedMessage[FeedItem]) -> None:
        """Take in one item."""
        self.take(received.data, anyio.current_time())

    def take(self, item: FeedItem, at: float) -> None:
        """Record one item received at that time."""
        text = isinstance(item.event, TextDelta | TextReset | ReasoningDelta)
        step = item.event.step if text else None  # type: ignore[union-attr]
        before = self._last.get(item.turn)
        if before is not None and (item.epoch, item.index) <= before.place:
            return  # told again, for readers that missed it
        self._last[item.turn] = _ReceivedItem((item.epoch, item.index), step, at)
        self._take_tool(item, at)
        if before is None or before.step is None:
            return
        if step == before.step or item.epoch > before.place[0]:
            self._note(item.turn, before.at, at)

    def _take_tool(self, item: FeedItem, at: float) -> None:
        match item.event:
            case ToolStarted(step=step, call=call):
                tools = self._tools.setdefault((item.turn, step), _Tools(at))
                if call.id not in tools.calls:
                    tools.calls.add(call.id)
                    tools.own += _own_time(call)
            case ToolEnded(step=step, call_id=id) if (item.turn, step) in self._tools:
                tools = self._tools[item.turn, step]
                if id not in tools.ended:
                    tools.ended.add(id)
                    self._note(item.turn, min(tools.began + tools.own, at), at)

    def _note(self, turn: str, begin: float, end: float) -> None:
        self.silences.setdefault(turn, []).append((begin, end))


def _own_time(call: ToolCall) -> float:
    """Seconds that a tool of ``effects.py`` takes by itself."""
    return sum(float(call.arguments.get(name, 0.0)) for name in ("before", "after", "seconds"))
