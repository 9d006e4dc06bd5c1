"""The feed of a running turn: positions, coalescing of text, and repair after the server was unavailable.

Feed items are stored asynchronously, so a crash of the server may lose the last ones. The writer keeps its
items and sends those that the server lacks again; readers drop duplicates.
"""

import logging
from collections.abc import Iterable
from typing import Protocol

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import cancel_shielded_checkpoint
from msgspec import UnsetType

from trunkline.contracts.turns.feed_events import JournalTranslator, NumberedEvent
from trunkline.contracts.turns.feed_messages import FeedEvent, FeedItem, ReasoningDelta, TextDelta, TextReset
from trunkline.contracts.turns.lanes import Lane, lane_of, recorded_lane
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.subjects import FEED
from trunkline.workers.monitor.turn import Turn
from trunkline_bus import Bus, BusError, Scope

log = logging.getLogger(__name__)

RETAIN_SECONDS = 20.0
"""Seconds for which the items of an ended turn are kept, in case the server lost them."""


YIELD_EVERY = 64
"""Items after which the writer yields to other turns: an answer may have thousands of tool calls."""


class EventSink(Protocol):
    """A receiver of feed events while text streams."""

    async def emit(self, *events: FeedEvent) -> None:
        """Send events, in this order."""
        ...


class FeedSink(EventSink, Protocol):
    """A receiver of all feed events of a runner."""

    async def emit_journaled(self, *events: NumberedEvent) -> None:
        """Send events that the journal numbers, in this order."""
        ...


class FeedWriter:
    """Writes the feed of one turn in one epoch."""

    def __init__(
        self, bus: Bus, block: str, conversation: str, turn: str, epoch: int, lane: Lane = "interactive"
    ) -> None:
        self._bus = bus
        self._lane: Lane | UnsetType = recorded_lane(lane)
        self._scope = Scope(block=block, conversation=conversation, turn=turn)
        self._keys = {"conversation": conversation, "turn": turn}
        self._turn = turn
        self._epoch = epoch
        self._items: list[FeedItem] = []
        self._order = anyio.Lock(fast_acquire=True)

    async def emit(self, *events: FeedEvent) -> None:
        """Send events at the next positions."""
        await self.emit_journaled(*(NumberedEvent(event) for event in events))

    async def emit_journaled(self, *events: NumberedEvent) -> None:
        """Send events that the journal numbers at the next positions."""
        async with self._order:
            for event, number in events:
                index = len(self._items)
                item = FeedItem(
                    turn=self._turn,
                    epoch=self._epoch,
                    index=index,
                    event=event,
                    number=number,
                    lane=self._lane,
                )
                self._items.append(item)
                await self._send(item)
                if index % YIELD_EVERY == YIELD_EVERY - 1:
                    await cancel_shielded_checkpoint()

    async def repair(self) -> None:
        """Send items that the server lacks again, unless another monitor writes the turn's feed by now.

        Lost items may precede stored ones, because new items are sent as soon as the connection is restored.
        """
        stored_indexes = set[int]()
        async for stored in self._bus.history(FEED, after=0, **self._keys):
            if stored.data.epoch > self._epoch:
                return
            if stored.data.epoch == self._epoch:
                stored_indexes.add(stored.data.index)
        for item in tuple(self._items):
            if item.index not in stored_indexes:
                await self._send(item)

    async def _send(self, item: FeedItem) -> None:
        try:
            await self._bus.publish(FEED, item, scope=self._scope, **self._keys)
        except BusError as error:
            log.info(
                "feed item %s.%s of %s is sent after a reconnection: %s",
                item.epoch,
                item.index,
                item.turn,
                error,
            )


class TextStream:
    """Coalesces the text of one model call into few items: the first piece at once, then one item per
    window."""

    def __init__(self, feed: EventSink, step: int, window: float, *, partial_text: str = "") -> None:
        self._feed = feed
        self._step = step
        self._window = window
        self._waiting: list[tuple[bool, str]] = []
        self._some = anyio.Event()
        self._sent = {False: len(partial_text), True: 0}
        self._closed = False
        self.late_reasoning = 0
        """The number of characters of the reasoning that came after the text began."""
        self._pieces: dict[bool, list[str]] = {
            False: [partial_text],
            True: [],
        }  # lists of pieces, because appending to one string would copy it each time

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces[False])

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return "".join(self._pieces[True])

    async def run(self) -> None:
        """Send waiting text once per window, until cancelled."""
        while True:
            await self._some.wait()
            await self.flush()
            await anyio.sleep(self._window)

    def add(self, piece: str, *, reasoning: bool = False) -> None:
        """Add a piece of text. After ``close()`` it is discarded."""
        if self._closed:
            return
        if reasoning and any(self._pieces[False]):
            self.late_reasoning += len(piece)
        self._pieces[reasoning].append(piece)
        self._waiting.append((reasoning, piece))
        self._some.set()

    async def close(self) -> str:
        """Send the waiting text and accept no more; return the text, which is exactly what readers got."""
        await self.flush()
        self._closed = True
        return self.text

    async def flush(self) -> None:
        """Send all waiting text, including text that is added meanwhile.

        The flush is shielded from cancellation, which would otherwise lose the pieces that were already taken out.
        """
        with anyio.CancelScope(shield=True):
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                await self._feed.emit(*self._events(waiting))
            self._some = anyio.Event()

    async def emit(self, *events: FeedEvent) -> None:
        """Send other events after the text that was added before."""
        with anyio.CancelScope(shield=True):
            await self.flush()
            await self._feed.emit(*events)

    def _events(self, waiting: list[tuple[bool, str]]) -> Iterable[FeedEvent]:
        for kind, text in _joined(waiting):
            offset = self._sent[kind]
            self._sent[kind] += len(text)
            shape = ReasoningDelta if kind else TextDelta
            yield shape(step=self._step, offset=offset, text=text)


def _joined(pieces: list[tuple[bool, str]]) -> list[tuple[bool, str]]:
    """Return the pieces with neighbours of the same kind joined."""
    runs: list[tuple[bool, list[str]]] = []
    for kind, text in pieces:
        if runs and runs[-1][0] is kind:
            runs[-1][1].append(text)
        else:
            runs.append((kind, [text]))
    return [(kind, "".join(texts)) for kind, texts in runs]


class FeedRegistry:
    """Keeps the feeds of this monitor's turns, including recently ended ones, and repairs them after a
    reconnection."""

    def __init__(self, bus: Bus, tasks: TaskGroup) -> None:
        self._bus = bus
        self._tasks = tasks
        self._feeds: set[FeedWriter] = set()
        self.undo = bus.on_reconnect(self._repair)

    def open(self, request: TurnRequested, epoch: int) -> FeedWriter:
        """Open the feed of a turn that starts or resumes."""
        lane = lane_of(request.trigger, request.lane)
        feed = FeedWriter(self._bus, request.block, request.conversation, request.turn, epoch, lane)
        self._feeds.add(feed)
        return feed

    def close(self, feed: FeedWriter) -> None:
        """Release the feed of an ended turn after RETAIN_SECONDS."""
        self._tasks.start_soon(self._linger, feed)

    async def _linger(self, feed: FeedWriter) -> None:
        await anyio.sleep(RETAIN_SECONDS)
        self._feeds.discard(feed)

    async def _repair(self) -> None:
        for feed in tuple(self._feeds):
            try:
                await feed.repair()
            except BusError as error:
                log.warning("a feed could not be repaired: %s", error)


def replayed_events(
    turn: Turn, translator: JournalTranslator, *, partial_text: str = ""
) -> Iterable[NumberedEvent]:
    """Return all events of the turn so far, for a new epoch. Readers drop the events of former epochs.

    ``partial_text`` is the text of an interrupted answer that the model continues. The text is sent again, because a
    reader that missed the former epoch does not have it.
    """
    for entry in turn.entries:
        yield from translator.translate(entry)
    if partial_text:
        yield NumberedEvent(TextDelta(step=turn.step, offset=0, text=partial_text))
    elif not (turn.steps and turn.steps[-1].partial):
        yield NumberedEvent(TextReset(step=turn.step))
