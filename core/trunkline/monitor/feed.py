"""What a turn shows while it runs: positions, coalescing of text, and repair after the server was away.

The feed is stored asynchronously, so a crash of the server may lose its last items. Whoever wrote them still has
them and sends again what the server does not know; readers drop what they have seen.
"""

import logging
from collections.abc import Iterable
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from trunkline.errors import FIXED_SENTENCES
from trunkline.messages.turn import (
    ApprovalAsked,
    ApprovalRecorded,
    FeedEvent,
    FeedItem,
    Finished,
    JournalEntry,
    MessageSteered,
    ModelCallFinished,
    RanTool,
    ReasoningDelta,
    Started,
    Steered,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    approval_requested,
    approval_settled,
)
from trunkline.monitor.turn import Action, Step, Turn
from trunkline.subjects import FEED
from trunkline_bus import Bus, BusError, Scope

log = logging.getLogger(__name__)

LINGER = 20.0
"""Seconds for which an ended turn's items are kept, in case the server lost them."""


class Show(Protocol):
    """Where a runner shows what happens."""

    async def emit(self, *events: FeedEvent) -> None:
        """Show events, in this order."""
        ...


class TurnFeed:
    """Writes the feed of one turn in one epoch."""

    def __init__(self, bus: Bus, block: str, conversation: str, turn: str, epoch: int) -> None:
        self._bus = bus
        self._scope = Scope(block=block, conversation=conversation, turn=turn)
        self._keys = {"conversation": conversation, "turn": turn}
        self._turn = turn
        self._epoch = epoch
        self._items: list[FeedItem] = []
        self._order = anyio.Lock(fast_acquire=True)

    async def emit(self, *events: FeedEvent) -> None:
        """Send events at the next positions."""
        async with self._order:
            for event in events:
                item = FeedItem(turn=self._turn, epoch=self._epoch, index=len(self._items), event=event)
                self._items.append(item)
                await self._send(item)

    async def repair(self) -> None:
        """Send again what the server does not have, unless somebody else tells the turn by now.

        What it lost may lie before what it has: new items are sent as soon as the connection is back.
        """
        kept = set[int]()
        async for stored in self._bus.history(FEED, after=0, **self._keys):
            if stored.data.epoch > self._epoch:
                return
            if stored.data.epoch == self._epoch:
                kept.add(stored.data.index)
        for item in tuple(self._items):
            if item.index not in kept:
                await self._send(item)

    async def _send(self, item: FeedItem) -> None:
        try:
            await self._bus.publish(FEED, item, scope=self._scope, **self._keys)
        except BusError as error:
            log.info("feed item %s.%s of %s waits for the bus: %s", item.epoch, item.index, item.turn, error)


class TextStream:
    """Gathers the text of one model call into few items: the first piece at once, then one item a window."""

    def __init__(self, feed: Show, step: int, window: float, *, begun: str = "") -> None:
        self._feed = feed
        self._step = step
        self._window = window
        self._waiting: list[tuple[bool, str]] = []
        self._some = anyio.Event()
        self._sent = {False: len(begun), True: 0}
        self._closed = False
        self._pieces: dict[bool, list[str]] = {
            False: [begun],
            True: [],
        }  # one string would be copied for each

    @property
    def text(self) -> str:
        """All of the text so far."""
        return "".join(self._pieces[False])

    @property
    def reasoning(self) -> str:
        """All of the reasoning so far."""
        return "".join(self._pieces[True])

    async def run(self) -> None:
        """Send what gathers, until cancelled."""
        while True:
            await self._some.wait()
            await self.flush()
            await anyio.sleep(self._window)

    def add(self, piece: str, *, reasoning: bool = False) -> None:
        """Take in a piece of text; after ``cut()`` it is let fall."""
        if self._closed:
            return
        self._pieces[reasoning].append(piece)
        self._waiting.append((reasoning, piece))
        self._some.set()

    async def cut(self) -> str:
        """Send what is waiting and take no more; returns the text, which is then exactly what people see."""
        await self.flush()
        self._closed = True
        return self.text

    async def flush(self) -> None:
        """Send all that is waiting, also what comes meanwhile.

        Once begun it is done, since what was taken out would be lost with a cancelled task.
        """
        with anyio.CancelScope(shield=True):
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                await self._feed.emit(*self._events(waiting))
            self._some = anyio.Event()

    async def show(self, *events: FeedEvent) -> None:
        """Show something else, after the text that came before it."""
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
    """Neighbours of the same kind as one."""
    runs: list[tuple[bool, list[str]]] = []
    for kind, text in pieces:
        if runs and runs[-1][0] is kind:
            runs[-1][1].append(text)
        else:
            runs.append((kind, [text]))
    return [(kind, "".join(texts)) for kind, texts in runs]


class FeedDesk:
    """Holds the feeds of this monitor's turns, the lately ended ones too, and repairs them after a reconnection."""

    def __init__(self, bus: Bus, tasks: TaskGroup) -> None:
        self._bus = bus
        self._tasks = tasks
        self._feeds: set[TurnFeed] = set()
        self.undo = bus.on_reconnect(self._repair)

    def open(self, block: str, conversation: str, turn: str, epoch: int) -> TurnFeed:
        """The feed of a turn that begins or resumes."""
        feed = TurnFeed(self._bus, block, conversation, turn, epoch)
        self._feeds.add(feed)
        return feed

    def close(self, feed: TurnFeed) -> None:
        """The turn is over here; its items are kept a while."""
        self._tasks.start_soon(self._linger, feed)

    async def _linger(self, feed: TurnFeed) -> None:
        await anyio.sleep(LINGER)
        self._feeds.discard(feed)

    async def _repair(self) -> None:
        for feed in tuple(self._feeds):
            try:
                await feed.repair()
            except BusError as error:
                log.warning("a feed could not be repaired: %s", error)


# What people see of an entry ---------------------------------------------------------------------------------


def shown(turn: Turn, entry: JournalEntry) -> Iterable[FeedEvent]:
    """The events that an entry means, once it is recorded. Text, and tools that the model's side ran, were shown
    while they came."""
    match entry:
        case Started(statuses=statuses):
            yield from statuses or ()
        case ModelCallFinished():
            yield from _calls_of(turn.steps[-1])
        case ToolFinished(call_id=call_id):
            yield from (_ended(turn.steps[-1], a) for a in turn.actions if a.call.id == call_id)
        case ApprovalAsked():
            call = next(action.call for action in turn.actions if action.call.id == entry.call_id)
            yield approval_requested(_id(turn), call, entry)
        case ApprovalRecorded():
            yield approval_settled(entry)
            yield from _denied(turn, entry.call_id)
        case Steered(message=message):
            yield MessageSteered(message=message)
        case Finished():
            sentence = None if entry.code is None else FIXED_SENTENCES[entry.code]
            yield TurnEnded(
                reason=entry.reason,
                message_id=entry.message_id,
                usage=entry.usage,
                code=entry.code,
                sentence=sentence,
            )
        case _:
            return


def replayed(turn: Turn, *, begun: str = "") -> Iterable[FeedEvent]:
    """Everything so far, in full, for a new epoch. Readers trim what they have seen.

    ``begun`` is the text of an interrupted answer that is gone on with. It is told again too: a reader that missed
    the epoch before could not know it otherwise.
    """
    if turn.started is not None:
        yield from turn.started.statuses or ()
    for message in turn.early:
        yield MessageSteered(message=message)
    for step in turn.steps:
        if step.reasoning:
            yield ReasoningDelta(step=step.number, offset=0, text=step.reasoning)
        yield from _told(step)
        yield from _calls_of(step)
        yield from (event for action in step.actions for event in _story(turn, step, action))
        yield from (MessageSteered(message=message) for message in step.steered)
    if begun:
        yield TextDelta(step=turn.step, offset=0, text=begun)
    elif not (turn.steps and turn.steps[-1].partial):
        yield TextReset(step=turn.step)


def ran_events(step: int, ran: RanTool) -> tuple[FeedEvent, FeedEvent]:
    """A call that the model's side ran, and its result."""
    ended = ToolEnded(step=step, call_id=ran.call.id, name=ran.call.name, output=ran.output, error=ran.error)
    return ToolStarted(step=step, call=ran.call), ended


def _told(step: Step) -> Iterable[FeedEvent]:
    """The text of a step, with the tools that the model's side ran where they came."""
    begin = 0
    for ran in step.ran:
        if ran.at > begin:
            yield TextDelta(step=step.number, offset=begin, text=step.text[begin : ran.at])
        begin = max(begin, ran.at)
        yield from ran_events(step.number, ran)
    if step.text[begin:]:
        yield TextDelta(step=step.number, offset=begin, text=step.text[begin:])


def _calls_of(step: Step) -> Iterable[FeedEvent]:
    for action in step.actions:
        yield ToolStarted(step=step.number, call=action.call, client=action.client)


def _story(turn: Turn, step: Step, action: Action) -> Iterable[FeedEvent]:
    """What happened to a call so far."""
    if action.asked is not None:
        yield approval_requested(_id(turn), action.call, action.asked)
    if action.asked is not None and action.decision is not None:
        yield approval_settled(action.decision)
    if action.outcome is not None:
        yield _ended(step, action)


def _id(turn: Turn) -> str:
    assert turn.request is not None
    return turn.request.turn


def _ended(step: Step, action: Action) -> ToolEnded:
    assert action.outcome is not None
    return ToolEnded(
        step=step.number,
        call_id=action.call.id,
        name=action.call.name,
        output=action.outcome.output,
        error=action.outcome.status != "ok",
    )


def _denied(turn: Turn, call_id: str) -> Iterable[FeedEvent]:
    for action in turn.actions:
        if action.call.id == call_id and action.outcome is not None:
            yield _ended(turn.steps[-1], action)
