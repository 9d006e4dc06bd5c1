"""Order the feed of a turn, without I/O: items may arrive in any order, twice or late; each event is delivered once.

Within an epoch the indexes count up from 0 without gaps, and an epoch first repeats, from offset 0, the steps
finished before it. So only the highest epoch counts, and its items are taken strictly by index. Text is trimmed by
the part already delivered, or delivered again in full if it differs. Every other event is delivered once per id.

A position names all items taken: ``2.5`` is item 5 of epoch 2. ``1.7_2.5`` adds that items 0 to 7 of epoch 1 were
taken before. ``1.7_2.5~3`` adds that the events numbered 0 to 2 were among them. ``2.5-1`` means that item 6 became
several events of which the first was delivered: a reader that resumes there receives all of them again.

A reader's whole state can be rebuilt from a position and the stored feed. If the feed lost items, text is delivered
again in full; for all other events the numbers identify what the reader has, because every epoch repeats them in the
journal's order.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import inf
from typing import NamedTuple

from msgspec import UNSET

from trunkline.contracts.turns.feed_events import JOURNAL_EPOCH
from trunkline.contracts.turns.feed_messages import (
    LANE_STATUS,
    ApprovalRequested,
    ApprovalSettled,
    FeedEvent,
    FeedItem,
    MessageSteered,
    ReasoningDelta,
    StatusShown,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    TurnEnded,
)
from trunkline.contracts.turns.lanes import Lane
from trunkline.contracts.turns.text_builder import TextBuilder

_LOST = "\0"
"""Stands for a character of an item that the stream lost, so that the character cannot be looked up."""

Chain = list[tuple[int, int]]


class Position(NamedTuple):
    """The epochs with the last index taken in each, and the number of numbered events taken."""

    chain: Chain
    numbered: int = 0


def parse_position(position: str) -> Position:
    """Return the parts of a position; the chain is empty for "". Raise ValueError if ``position`` is not a position."""
    chain: Chain = []
    whole, dash, part = position.partition("-")
    if dash and not _is_number(part):
        raise ValueError(f"{position!r} is not a position in a feed")
    places, tilde, numbered = whole.partition("~")
    if tilde and not (places and _is_number(numbered)):
        raise ValueError(f"{position!r} is not a position in a feed")
    for part in places.split("_") if places else ():
        epoch, dot, index = part.partition(".")
        if not (dot and _is_number(epoch) and _is_number(index)):
            raise ValueError(f"{position!r} is not a position in a feed")
        chain.append((int(epoch), int(index)))
    if chain and chain[-1][0] > JOURNAL_EPOCH:
        raise ValueError(f"{position!r} is not a position in a feed")
    if any(later[0] <= earlier[0] for earlier, later in pairwise(chain)):
        raise ValueError(f"{position!r} is not a position in a feed")
    return Position(chain, int(numbered or 0))


def _is_number(text: str) -> bool:
    return 0 < len(text) < 19 and text.isascii() and text.isdigit()


class FeedMerge:
    """The state of a feed reader. Call ``resume`` and ``offer_stored`` with the stored items and ``offer`` with each
    item that arrives; ``take`` yields the events that are due.

    ``text`` changes with every event that ``take`` yields, so it always matches the event last yielded.
    """

    def __init__(self) -> None:
        self.ended = False
        self.lane: Lane = "interactive"
        """The turn's lane, as the last item has it."""
        self._passed: Chain = []
        self._epoch = -1
        self._next = 0
        self._waiting: dict[int, FeedItem] = {}
        self._numbered = 0
        """The count of numbered events delivered; they are the first ones."""
        self._texts: dict[int, TextBuilder] = {}
        self._reasonings: dict[int, TextBuilder] = {}
        self._seen: set[tuple[str, str]] = set()
        self._doubtful = -1
        """The epoch that lacks items which the reader had before it resumed; -1 for none."""
        self._sure: set[int] = set()
        """Steps that a later epoch has repeated since."""
        self._delivered: dict[int, int] = {}
        """The length of each step's text in the current epoch."""

    @property
    def position(self) -> str:
        """The position after all items taken, for a later ``resume``; "" at the start."""
        chain = [*self._passed, (self._epoch, self._next - 1)] if self._next else self._passed
        places = "_".join(f"{epoch}.{index}" for epoch, index in chain)
        return f"{places}~{self._numbered}" if self._numbered else places

    @property
    def has_gap(self) -> bool:
        """Report whether an item waits for an earlier item that has not arrived."""
        return bool(self._waiting)

    @property
    def is_ready(self) -> bool:
        """Report whether ``take`` has an event to yield, or the turn has ended."""
        return self.ended or self._next in self._waiting

    @property
    def text(self) -> str:
        """All text that is valid after the last event, in the order of the steps."""
        return "".join(str(self._texts[step]) for step in sorted(self._texts)).replace(_LOST, "")

    def resume(self, position: str, stored: Iterable[FeedItem]) -> None:
        """Take all items that ``position`` covers without delivering them. ``stored`` is the stored feed.

        If the feed lost some of these items, the reader's text is unknown, so the next epoch delivers the text again
        in full.
        """
        items = _ordered(stored)
        doubtful = -1
        chain, self._numbered = parse_position(position)
        for epoch, last in chain:
            self._enter(epoch)
            covered = [item for item in items if item.epoch == epoch and item.index <= last]
            for item in covered:
                self._consume(item)
            if len({item.index for item in covered}) <= last:
                doubtful = epoch
            self._next = last + 1
        self._doubtful = doubtful

    def offer_stored(self, stored: Iterable[FeedItem]) -> None:
        """Add all stored items. Only those of the highest epoch are delivered."""
        for item in reversed(_ordered(stored)):
            self.offer(item)

    def offer(self, item: FeedItem) -> None:
        """Add an item. Items may arrive in any order."""
        if item.epoch > self._epoch:
            self._enter(item.epoch)
        if item.epoch == self._epoch and item.index >= self._next:
            self._waiting[item.index] = item

    def take(self) -> Iterator[tuple[str, FeedEvent]]:
        """Yield the events that are due, each with the position to resume from after that event. No two positions are
        equal. Nothing follows ``TurnEnded``.
        """
        while not self.ended and self._next in self._waiting:
            before = self.position
            item = self._waiting.pop(self._next)
            self._next += 1
            self.lane = item.lane or "interactive"
            for number, (part, last) in enumerate(self._apply(item), start=1):
                yield (self.position if last else f"{before}-{number}"), part

    def _enter(self, epoch: int) -> None:
        if self._next:
            self._passed.append((self._epoch, self._next - 1))
        self._epoch, self._next = epoch, 0
        self._waiting.clear()
        self._delivered.clear()

    def _consume(self, item: FeedItem) -> None:
        for _ in self._apply(item):
            pass

    def _apply(self, item: FeedItem) -> Iterator[tuple[FeedEvent, bool]]:
        """Yield the events that the item adds, each with whether it is the last event of the item."""
        # First, the steps that this event closes: if a new epoch made a step shorter than the text delivered, no
        # later text corrects it. Then text, by offset: text that a new epoch repeats is trimmed, and is delivered
        # again in full only if it differs or if the feed lost items that the reader had. All other events are
        # delivered once, by number and id. The state is not stored. A client that reconnects names its last position,
        # and ``resume`` applies the same items in the same order (ADR 0004, 0024).
        event = item.event
        for step in self._cut_overlong(event):
            yield from ((part, False) for part, _ in self._retell(step))
        match event:
            case TextDelta():
                self._delivered[event.step] = event.offset + len(event.text)
                if event.offset == 0 and self._in_doubt(event.step):
                    self._texts[event.step] = TextBuilder(event.text)
                    yield from self._retell(event.step)
                else:
                    yield from self._grow(self._texts, event)
            case ReasoningDelta():
                yield from self._grow(self._reasonings, event)
            case TextReset():
                self._delivered.pop(event.step, None)
                if self._drop(event.step) or self._in_doubt(event.step):
                    yield event, True
            case ToolProgressed():
                yield event, True  # no epoch repeats it
            case _:
                if self._is_new(item):
                    self.ended = isinstance(event, TurnEnded)
                    yield event, True

    def _is_new(self, item: FeedItem) -> bool:
        """Report whether an event other than text was not delivered before: by its number, if it has one, and by its
        id.
        """
        key = _event_key(item.event)
        new = key not in self._seen
        self._seen.add(key)
        if item.number is not UNSET:
            new = new and item.number >= self._numbered
            self._numbered = max(self._numbered, item.number + 1)
        return new

    def _in_doubt(self, step: int) -> bool:
        """Report whether a new epoch now repeats a step for the first time while the reader's text of that step is
        unknown.
        """
        if not -1 < self._doubtful < self._epoch or step in self._sure:
            return False
        self._sure.add(step)
        return True

    def _grow(
        self, kept: dict[int, TextBuilder], event: TextDelta | ReasoningDelta
    ) -> Iterator[tuple[FeedEvent, bool]]:
        if not event.text:
            return
        known = kept.setdefault(event.step, TextBuilder())
        if (lost := event.offset - len(known)) > 0:
            known.append(_LOST * lost)
        overlap = known.part(event.offset, len(event.text))
        if not event.text.startswith(overlap):
            known.truncate(event.offset)
            known.append(event.text)
            yield from self._retell(event.step)
        elif new := event.text[len(overlap) :]:
            begin = len(known)
            known.append(new)
            yield type(event)(step=event.step, offset=begin, text=new), True

    def _cut_overlong(self, event: FeedEvent) -> list[int]:
        """Shorten the text of the steps that the event closes and that a new epoch made shorter than the text
        delivered. Return these steps.
        """
        found = [
            step
            for step, length in self._delivered.items()
            if step < _first_open_step(event) and length < len(self._texts.get(step, ()))
        ]
        for step in found:
            self._texts[step].truncate(self._delivered[step])
        return found

    def _retell(self, step: int) -> Iterator[tuple[FeedEvent, bool]]:
        """Deliver a step again whose text differs from the text delivered: a reset, then the whole current text."""
        reasoning, text = self._reasonings.get(step), self._texts.get(step)
        self._drop(step)
        yield TextReset(step=step), False
        if reasoning:
            self._reasonings[step] = reasoning
            yield ReasoningDelta(step=step, offset=0, text=str(reasoning)), not text
        if text:
            self._texts[step] = text
            yield TextDelta(step=step, offset=0, text=str(text)), True

    def _drop(self, step: int) -> bool:
        """Remove the text and reasoning of a step. Report whether there was any."""
        return any([self._texts.pop(step, ""), self._reasonings.pop(step, "")])


def _ordered(items: Iterable[FeedItem]) -> list[FeedItem]:
    return sorted(items, key=lambda item: (item.epoch, item.index))


def _first_open_step(event: FeedEvent) -> float:
    """Return the first step whose text may still grow after the event; the text of all lower steps is complete."""
    match event:
        case ToolStarted() | ToolProgressed() | ToolEnded():
            return event.step + 1
        case TextDelta() | ReasoningDelta():
            return event.step
        case TurnEnded():
            return inf
        case _:
            return 0


def _event_key(event: FeedEvent) -> tuple[str, str]:
    """Return a key that equal events share."""
    match event:
        case ApprovalRequested():  # a second approval of the same call has another id
            return type(event).__name__, event.id or event.call.id
        case ApprovalSettled():
            return type(event).__name__, event.id or event.call_id
        case ToolStarted():
            return type(event).__name__, event.call.id
        case ToolEnded():
            return type(event).__name__, event.call_id
        case MessageSteered():
            return type(event).__name__, event.message.id
        case StatusShown(name=name, data=data):  # a turn may be preempted several times
            return type(event).__name__, f"{name} {data}" if name == LANE_STATUS else name
        case _:
            return type(event).__name__, ""
