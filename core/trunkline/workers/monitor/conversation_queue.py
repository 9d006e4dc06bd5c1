"""One conversation's queue of inbox items. Decides what each item means; the executor runs the turns.

Cancels, steering and decisions reach a running turn at once; everything else waits for its place.

The order in which turns begin is that of the inbox, and no turn begins while the journal ends with another one that has
not ended. So a turn keeps its place whatever brings it back: a decision lies in the inbox behind the messages that came
while a person was waited for.
"""

import logging
from bisect import insort

import anyio

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.turns.messages import (
    ApprovalDecided,
    InboxItem,
    JournalEntry,
    TurnCancelRequested,
    TurnFinished,
    TurnRecord,
    TurnRequested,
    TurnStarted,
    TurnSteered,
)
from trunkline.errors import TRANSIENT_CODES
from trunkline.workers.monitor.approval_publisher import ApprovalPublisher, PublishedApprovals
from trunkline.workers.monitor.claimed_item import ClaimedItem, RecoveredItem
from trunkline.workers.monitor.inbox import Inbox
from trunkline.workers.monitor.journal import Fenced, Journal
from trunkline.workers.monitor.mailbox import TurnMailbox, is_immediate_cancel
from trunkline.workers.monitor.membership import Membership
from trunkline.workers.monitor.parked_turns import ParkedTurn
from trunkline.workers.monitor.slots import TurnSlots
from trunkline.workers.monitor.turn import Phase, Turn, TurnProtocolError
from trunkline.workers.monitor.turn_executor import TurnExecutor
from trunkline.workers.monitor.turn_recorder import TurnRecorder
from trunkline.workers.monitor.turn_run import TurnRun
from trunkline_bus import BusError, DecodeError, RemoteFault, SubjectError

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""How often a turn that fails in a way nobody foresaw is begun again before it is given up."""


class ConversationQueue:
    """One conversation here. ``work()`` runs as one task while there is anything to do."""

    def __init__(
        self,
        journal: Journal,
        *,
        executor: TurnExecutor,
        recorder: TurnRecorder,
        approvals: ApprovalPublisher,
        slots: TurnSlots,
        membership: Membership,
        inbox: Inbox,
    ) -> None:
        self._journal = journal
        self._executor = executor
        self._recorder = recorder
        self._approvals = approvals
        self._slots = slots
        self._membership = membership
        self._inbox = inbox
        self._queue: list[ClaimedItem] = []
        """In the order in which they were accepted, however they came here."""
        self._messages: list[Message] = []
        self._mailbox: TurnMailbox | None = None
        self.partition = -1
        """Where its items come from."""
        self.working = False
        self.closed = False
        """Whether nothing more is begun here, because the partition is given up."""

    @property
    def waiting(self) -> tuple[ClaimedItem, ...]:
        """The items that have not begun."""
        return tuple(self._queue)

    def offer(self, held: ClaimedItem) -> None:
        """Take an item in: hand it to the running turn if it is about that, else queue it. Opens a closed queue."""
        self.partition, self.closed = held.partition, False
        if self._mailbox is None or not self._mailbox.put(held):
            self._enqueue(held)

    def close(self) -> tuple[ClaimedItem, ...]:
        """Begin nothing more, and return what has not begun. A running turn goes on."""
        self.closed = True
        return self.drop()

    def drop(self) -> tuple[ClaimedItem, ...]:
        """Let go of everything that has not begun, and return it."""
        dropped = self.waiting
        self._queue.clear()
        for held in dropped:
            self._inbox.release(held)
        return dropped

    async def has_stale_items(self) -> bool:
        """Report whether another monitor went on with the conversation while items wait here for a person. As long as
        they are held here, the server gives them to nobody else. Where a turn runs, its next write tells. Raises
        BusError.
        """
        return self._has_waiting_items() and await self._journal.is_fenced() and self._has_waiting_items()

    def _has_waiting_items(self) -> bool:
        return bool(self._queue) and not self.working

    def _enqueue(self, *items: ClaimedItem) -> None:
        """Put items where they belong: what comes back from a turn or a dead owner may be older than the rest."""
        for held in items:
            insort(self._queue, held, key=lambda other: other.seq)

    async def work(self) -> None:
        """Work the queue off, as far as it can be. Raises Fenced when the conversation has another owner."""
        try:
            while not self.closed and (held := self._next()) is not None:
                await self._handle_next(held)
        except Fenced:
            self.drop()
            raise

    async def _handle_next(self, expected: ClaimedItem) -> None:
        """Work on an item in a slot of its own, so that a conversation that always has one leaves room for others.

        ``expected`` is what is next as it looks now; by the time there is a slot it may be another item, or none.
        """
        async with self._slots.acquire(lambda: self._has_begun(expected)):
            held = self._next()
            if held is not None:
                self._queue.remove(held)
                await self._handle_with_retry(held)

    def _next(self) -> ClaimedItem | None:
        """The next item to work on: what is about the turn that has not ended, if there is one, else the oldest.

        While a turn is parked nothing else is next; one that runs no more is brought back by whatever waits behind it.
        """
        ahead = self._journal.unfinished
        about = (held for held in self._queue if ahead in (None, held.item.turn))
        oldest = None if self._journal.parked else next(iter(self._queue), None)
        return next(about, oldest)

    async def _has_begun(self, held: ClaimedItem) -> bool:
        """Report whether the item is about a turn that has begun. What was delivered for the first time needs no
        look.
        """
        if held.first and isinstance(held.item, TurnRequested):
            return False
        try:
            return await self._journal.has_turn(held.item.turn)
        except BusError as error:
            log.debug("whether turn %s has begun could not be seen: %s", held.item.turn, error)
            return False

    async def _handle_with_retry(self, held: ClaimedItem) -> None:
        """Work on an item until it is done. While others are away it keeps its place."""
        pause, tries = 0.2, 0
        while True:
            try:
                return await (self._handle(held) if tries < MAX_ATTEMPTS else self._give_up(held))
            except Fenced:
                self._inbox.release(held)
                raise
            except Exception as error:
                held.first = False  # the try may have written: from now on the journal is read
                if _is_transient(error):
                    log.warning("turn %s waits for the bus or another worker: %s", held.item.turn, error)
                else:
                    tries += 1
                    log.exception(
                        "turn %s failed unforeseen, try %d of %d", held.item.turn, tries, MAX_ATTEMPTS
                    )
            await anyio.sleep(pause)
            pause = min(pause * 2, 5.0)

    async def _handle(self, held: ClaimedItem) -> None:
        # The item leaves the inbox last, in every branch: until then the server delivers it again after a crash, and
        # the journal tells how far the turn came (ADR 0002, 0005). So each branch may run twice, in two monitors.
        #
        # The message that starts a conversation, delivered for the first time, needs no read of the journal. If the
        # server errs about that after its own crash, the first write is Fenced and the item is delivered again
        # (ADR 0003).
        if held.first and isinstance(held.item, TurnRequested) and held.item.begins:
            self._journal.assume_empty()
        # The cache counts only while the journal ends where the turn was parked. Otherwise somebody else has written,
        # and the journal is replayed below.
        if isinstance(held.item, ApprovalDecided | TurnCancelRequested):
            parked = self._executor.take_parked(held.item.turn, self._journal.last_seq)
            if parked is not None and parked.turn.request is not None:
                return await self._run(held, parked.turn, parked.turn.request, parked.epoch, parked)
        # From here on the journal decides. It is read only when no monitor that hands the conversation over still
        # writes to it (ADR 0008). If one writes all the same, whichever writes second is Fenced.
        records = await self._settled_records(held)
        turn, request = _replay_turn(records), _request(records, held.item)
        if isinstance(held.item, TurnSteered) and _is_too_late(turn, held.item):
            held.item = held.item.request  # a turn of its own
            return await self._handle(held)
        if request is None:
            return await self._inbox.settle(held)
        if turn.phase is Phase.DONE:
            # A monitor or the server may have died between the record of the end and its publication, so both are
            # published again. An approval is appended by compare-and-set (ADR 0025). The fact may be out twice:
            # learning passes over a turn that it has learned from (ADR 0022).
            if not held.first:
                await self._publish_end(turn, request, PublishedApprovals())
            return await self._inbox.settle(held)
        # The same crash between the record that the turn is parked and the settling of its message. The question must
        # be out with its timers before the message goes: nothing else would bring the turn back (ADR 0025).
        if turn.phase is Phase.PARKED and isinstance(held.item, TurnRequested):
            await self._approvals.publish_missing(turn, PublishedApprovals())
            return await self._inbox.settle(held)
        # Only a turn that has to run is checked for its place: what is settled above begins nothing (ADR 0040).
        if self._journal.unfinished not in (None, request.turn):
            return await self._requeue_behind(self._journal.unfinished, held)
        # A new epoch even after a crash of this same monitor: readers of the feed tell the two runs apart (ADR 0004).
        await self._run(held, turn, request, records[-1].epoch + 1 if records else 1)

    async def _requeue_behind(self, ahead: str, held: ClaimedItem) -> None:
        """Put the item back, and have the turn before it run first, unless that one waits for a person."""
        if not self._journal.parked and not any(other.item.turn == ahead for other in self._queue):
            request = await self._journal.request_of(ahead)
            if request is None:
                log.error(
                    "turn %s cannot be ended, and others go on: its journal does not tell its message", ahead
                )
                self._journal.skip_unfinished_turn()
            else:
                self._enqueue(RecoveredItem(request, held))
        self._enqueue(held)

    async def _run(
        self,
        held: ClaimedItem,
        turn: Turn,
        request: TurnRequested,
        epoch: int,
        parked: ParkedTurn | None = None,
    ) -> None:
        # The mailbox is there before the queue is searched, so an item that is offered meanwhile is in one of the two.
        # Cancels are taken out of it at once: they count before the run starts anything.
        controls = [] if isinstance(held.item, TurnRequested) else [held]
        self._mailbox = TurnMailbox(request.turn)
        for waiting in tuple(self._queue):
            if self._mailbox.put(waiting):
                self._queue.remove(waiting)
        controls.extend(self._mailbox.take_cancels())
        run = TurnRun(
            turn=turn,
            request=request,
            epoch=epoch,
            carrier=held,
            controls=tuple(controls),
            mailbox=self._mailbox,
            journal=self._journal,
            messages=self._messages,
            parked=parked,
        )
        try:
            await self._executor.run(run)
        finally:
            # Whatever ended the run, what the journal does not have goes back into the queue: it came too late for
            # the turn, or the run failed. An item that the journal has was settled by the runner.
            self._enqueue(*self._mailbox.unsettled())
            self._mailbox = None
        if isinstance(held.item, TurnSteered) and _is_too_late(turn, held.item):
            return self._enqueue(held)
        # The carrier last. A crash before this line has the server deliver it again: _handle finds the turn done or
        # parked, publishes what is missing, and settles it (ADR 0025). A BusError here has the queue try again in
        # the same way.
        await self._publish_end(turn, request, run.published)
        await self._inbox.settle(held)

    async def _publish_end(self, turn: Turn, request: TurnRequested, published: PublishedApprovals) -> None:
        """Publish what a turn that is done or parked leaves to others: approvals, and the fact that it finished."""
        await self._approvals.publish_missing(turn, published)
        if turn.finished is not None:
            await self._recorder.publish_finished(request, turn.finished)

    async def _settled_records(self, current: ClaimedItem) -> list[TurnRecord]:
        """The turn's journal, once nobody who is about to leave in good order still writes to it.

        A cancel is not kept waiting: it takes the turn from whoever has it.
        """
        turn = current.item.turn
        records = await self._journal.replay(turn)
        while records and _replay_turn(records).phase not in (Phase.DONE, Phase.PARKED):
            cancelled = any(
                is_immediate_cancel(held.item) and held.item.turn == turn for held in (current, *self._queue)
            )
            if cancelled or not await self._membership.is_finishing(records[-1].owner, current.conversation):
                break
            await anyio.sleep(0.3)
            self._journal.forget_last_seq()
            records = await self._journal.replay(turn)
        return records

    async def _give_up(self, held: ClaimedItem) -> None:
        """End the turn, so that nobody waits for it for ever and the next one has its place."""
        entries, epoch = await self._journal.salvage(held.item.turn)
        turn = await self._readable_turn(held.item.turn)
        missing: tuple[JournalEntry, ...] = ()
        if turn.phase is Phase.NEW and (request := _find_request(entries, held.item)):
            missing = (TurnStarted(request=request, model=""),)
            turn.apply(missing[0])
        if turn.phase is not Phase.NEW and not any(isinstance(entry, TurnFinished) for entry in entries):
            await self._executor.give_up(turn, missing, epoch + 1, self._journal)
        if isinstance(held.item, TurnSteered) and not (
            turn.request and turn.has_message(held.item.request.message.id)
        ):
            held.item = held.item.request
            return self._enqueue(held)
        await self._inbox.settle(held)

    async def _readable_turn(self, turn: str) -> Turn:
        """The turn by its journal; a new one when that makes no sense."""
        try:
            return _replay_turn(await self._journal.replay(turn))
        except (DecodeError, TurnProtocolError):
            return Turn()


def _is_transient(error: Exception) -> bool:
    """Report whether waiting may help: the bus or a worker is away, or said that it cannot work now."""
    if isinstance(error, RemoteFault):
        return error.code in TRANSIENT_CODES
    return isinstance(error, BusError) and not isinstance(error, DecodeError | SubjectError)


def _replay_turn(records: list[TurnRecord]) -> Turn:
    turn = Turn()
    for record in records:
        for entry in record.entries:
            turn.apply(entry)
    return turn


def _is_too_late(turn: Turn, steered: TurnSteered) -> bool:
    """Report whether the turn ended, or never was, without having taken the message in."""
    if turn.phase is Phase.NEW:
        return True
    return turn.phase is Phase.DONE and not turn.has_message(steered.request.message.id)


def _request(records: list[TurnRecord], item: InboxItem) -> TurnRequested | None:
    """The message that the turn answers; None when a control item is about a turn nobody knows."""
    return _find_request([entry for record in records[:1] for entry in record.entries[:1]], item)


def _find_request(entries: list[JournalEntry], item: InboxItem) -> TurnRequested | None:
    started = [entry.request for entry in entries if isinstance(entry, TurnStarted)]
    return started[0] if started else item if isinstance(item, TurnRequested) else None
