"""Hears everything on the feed as it is said, whoever reads it: for how long a turn that was speaking fell silent.

A reader may be shown nothing for longer: the scripted model says the same words again when it is asked again, and
what a reader has it is not shown twice. A real model says something else, and its reader sees that at once.
"""

from dataclasses import dataclass

import anyio

from trunkline.messages.turn import FeedItem, ReasoningDelta, TextDelta, TextReset
from trunkline.subjects import FEED
from trunkline_bus import Bus, Received

Silence = tuple[float, float]
"""When it began and ended, on the clock of the run."""


@dataclass(frozen=True, slots=True)
class _Heard:
    place: tuple[int, int]
    step: int | None
    at: float


class Ear:
    """``silences``: by turn, from each piece of text to the next, or to the first word of a new owner."""

    def __init__(self) -> None:
        self.silences: dict[str, list[Silence]] = {}
        self._last: dict[str, _Heard] = {}

    async def listen(self, bus: Bus) -> None:
        """Listen for as long as the connection lives."""
        await bus.subscribe(FEED, self.hear, limit=1)

    async def hear(self, received: Received[FeedItem]) -> None:
        """Take in one item."""
        item = received.data
        text = isinstance(item.event, TextDelta | TextReset | ReasoningDelta)
        step = item.event.step if text else None  # type: ignore[union-attr]
        heard = _Heard((item.epoch, item.index), step, anyio.current_time())
        before = self._last.get(item.turn)
        if before is not None and heard.place <= before.place:
            return  # told again, for readers that missed it
        self._last[item.turn] = heard
        if before is None or before.step is None:
            return
        if step == before.step or item.epoch > before.place[0]:
            self.silences.setdefault(item.turn, []).append((before.at, heard.at))
