"""The queue of one conversation's inbox items. It decides what each item means; the executor runs the turns.

Cancels, steering and decisions reach a running turn at once; other items wait in order. Turns start in the
order of the inbox, and no turn starts while the journal ends with another turn that has not ended. So a
parked turn keeps its place, although the decision that resumes it follows later messages in the inbox.
"""

import logging
from bisect import insort

import anyio

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.turns.journal_messages import JournalEntry, TurnFinished, TurnRecord, TurnStarted
from trunkline.contracts.turns.lanes import Lane, highest_lane, lane_of
from trunkline.contracts.turns.messages import (
    AgentReported,
    ApprovalDecided,
    TurnCancelRequested,
    TurnRequested,
    TurnSteered,
)
from trunkline.errors import TRANSIENT_CODES
from trunkline.workers.monitor.approval_publisher import ApprovalPublisher, PublishedApprovals
from trunkline.workers.monitor.claimed_item import ClaimedItem, RecoveredItem
from trunkline.workers.monitor.inbox import Inbox
from trunkline.workers.monitor.journal import Fenced, Journal
from trunkline.workers.monitor.mailbox import (
    TurnMailbox,
    is_control_item,
    is_immediate_cancel,
    item_lane,
)
from trunkline.workers.monitor.membership import Membership
from trunkline.workers.monitor.parked_turns import ParkedTurn
from trunkline.workers.monitor.slots import TurnSlot, TurnSlots
from trunkline.workers.monitor.turn import Phase, Turn, TurnProtocolError
from trunkline.workers.monitor.turn_executor import TurnExecutor
from trunkline.workers.monitor.turn_recorder import TurnRecorder
from trunkline.workers.monitor.turn_records import find_request, is_too_late, replay_turn, requested_by
from trunkline.workers.monitor.turn_run import TurnRun
from trunkline_bus import BusError, DecodeError, RemoteFault, SubjectError
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

WAITING_PHASES = (Phase.DONE, Phase.PARKED, Phase.PREEMPTED)
"""The phases in which no monitor works on a turn."""

MAX_ATTEMPTS = 3
"""Attempts to run a turn that fails unexpectedly, before it is given up."""


class ConversationQueue:
    """The queue of one conversation in this monitor. ``work()`` runs as one task while the queue has work."""

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
        """Items in the order in which they were accepted, whether delivered or recovered."""
        self._messages: list[Message] = []
        self._mailbox: TurnMailbox | None = None
        self._slot: TurnSlot | None = None
        """The slot of the item that is handled or that waits to be."""
        self._current: ClaimedItem | None = None
        """That item."""
        self._preempted: dict[str, int] = {}
        """How often the turn that waits for a slot again was preempted."""
        self.partition = -1
        """The partition that the items come from."""
        self.working = False
        self.closed = False
        """True when no further item is started here, because the partition is given up."""

    @property
    def waiting(self) -> tuple[ClaimedItem, ...]:
        """The items that have not started."""
        return tuple(self._queue)

    def offer(self, claimed: ClaimedItem) -> None:
        """Pass the item to the running turn if the item concerns that turn, else queue the item. Reopens a closed
        queue."""
        self.partition, self.closed = claimed.partition, False
        if self._mailbox is None or not self._mailbox.put(claimed):
            self._enqueue(claimed)
        self._update_lane(claimed)

    def close(self) -> tuple[ClaimedItem, ...]:
        """Start nothing more, and return the items that have not started. A running turn continues."""
        self.closed = True
        return self.drop()

    def drop(self) -> tuple[ClaimedItem, ...]:
        """Remove all items that have not started, and return them."""
        dropped = self.waiting
        self._queue.clear()
        for claimed in dropped:
            self._inbox.release(claimed)
        return dropped

    async def has_stale_items(self) -> bool:
        """Report whether another monitor continued the conversation while items wait here for a person.

        While this monitor claims the items, the server delivers them to no other monitor. A running turn detects
        the other owner by its next write. Raises BusError.
        """
        return self._has_waiting_items() and await self._journal.is_fenced() and self._has_waiting_items()

    def _has_waiting_items(self) -> bool:
        return bool(self._queue) and not self.working

    def _enqueue(self, *items: ClaimedItem) -> None:
        """Insert items in inbox order. An item that a turn or a crashed owner returns may be older than the queued
        items."""
        for claimed in items:
            insort(self._queue, claimed, key=lambda other: other.seq)

    async def work(self) -> None:
        """Process the queue as far as possible. Raises Fenced when the conversation has another owner."""
        try:
            while not self.closed and (claimed := self._next()) is not None:
                await self._handle_next(claimed)
        except Fenced:
            self.drop()
            raise

    async def _handle_next(self, expected: ClaimedItem) -> None:
        """Acquire a slot and handle one item, so that a conversation with many items leaves slots to others.

        ``expected`` is the next item before the slot is acquired; afterwards it may be another item, or none.
        """
        slot = self._slots.slot(lambda: self._has_started(expected))
        slot.change(*self._urgency(expected))
        slot.note_preemptions(self._preempted.get(expected.item.turn, 0))
        self._slot, self._current = slot, expected
        try:
            await slot.take(expected.age if expected.first else 0.0)
            claimed = self._current = self._next()
            if claimed is not None:
                slot.change(*self._urgency(claimed))
                self._queue.remove(claimed)
                await self._handle_with_retry(claimed, slot)
        finally:
            slot.release()
            self._slot = self._current = None

    def _urgency(self, claimed: ClaimedItem) -> tuple[Lane, bool]:
        """Return the lane of an item, and whether it is about a control item.

        A conversation's turns run one after the other, so an item has the highest lane of all items that wait behind
        it: a person's message does not wait for a turn in the background.
        """
        waiting = (claimed, *self._queue)
        is_control = any(
            is_control_item(other.item) and other.item.turn == claimed.item.turn for other in waiting
        )
        lanes: list[Lane] = [lane for other in waiting if (lane := item_lane(other.item)) is not None]
        return highest_lane(lanes), is_control

    def _update_lane(self, arrived: ClaimedItem) -> None:
        """Move the current item to the lane that it has now that another item has arrived."""
        slot, current = self._slot, self._current
        if slot is None or current is None:
            return
        if self._mailbox is None:
            return slot.change(*self._urgency(current))
        if (lane := item_lane(arrived.item)) is not None:  # of the turn that runs, or of one behind it
            slot.change(highest_lane((slot.lane, lane)), slot.is_control)

    def _next(self) -> ClaimedItem | None:
        """Return the next item: one about the unfinished turn if there is one, else the oldest.

        While a turn is parked, only items about it are returned. An unfinished turn that does not run is
        resumed by any item that waits behind it.
        """
        first_turn = self._journal.unfinished
        about = (claimed for claimed in self._queue if first_turn in (None, claimed.item.turn))
        oldest = None if self._journal.parked else next(iter(self._queue), None)
        return next(about, oldest)

    async def _has_started(self, claimed: ClaimedItem) -> bool:
        """Report whether the item's turn has already started. An item that is delivered for the first time
        needs no lookup."""
        if claimed.first and isinstance(claimed.item, TurnRequested):
            return False
        try:
            return await self._journal.has_turn(claimed.item.turn)
        except BusError as error:
            log.debug("the journal of turn %s could not be read: %s", claimed.item.turn, error)
            return False

    async def _handle_with_retry(self, claimed: ClaimedItem, slot: TurnSlot) -> None:
        """Handle an item until it is done.

        While the bus or another worker is unavailable, the item keeps its place but no slot: nothing of its turn runs,
        and a stream that is missing for long, such as that of the audit log, must not stop other conversations.
        """
        backoff, attempts = Backoff(0.2, 5.0), 0
        while True:
            try:
                return await (
                    self._handle(claimed, slot) if attempts < MAX_ATTEMPTS else self._give_up(claimed)
                )
            except Fenced:
                self._inbox.release(claimed)
                raise
            except Exception as error:
                claimed.first = False  # the attempt may have written: from now on the journal is read
                if _is_transient(error):
                    log.warning(
                        "turn %s waits until the bus or another worker answers: %s", claimed.item.turn, error
                    )
                else:
                    attempts += 1
                    log.exception(
                        "turn %s failed unexpectedly, attempt %d of %d",
                        claimed.item.turn,
                        attempts,
                        MAX_ATTEMPTS,
                    )
            await slot.wait_without(backoff.sleep)

    async def _handle(self, claimed: ClaimedItem, slot: TurnSlot) -> None:
        # The item leaves the inbox last, in every branch: until then the server delivers it again after a crash, and
        # the journal records the progress of the turn (ADR 0002, 0005). So each branch may run twice, in two monitors.
        #
        # The message that starts a conversation, delivered for the first time, needs no read of the journal. If the
        # server reports a first delivery wrongly after its own crash, the first write is Fenced and the item is
        # delivered again (ADR 0003).
        if claimed.first and isinstance(claimed.item, TurnRequested) and claimed.item.begins:
            self._journal.assume_empty()
        # The cached turn is valid only while the journal ends where the turn was parked. Otherwise another monitor has
        # written, and the journal is replayed below.
        if isinstance(claimed.item, ApprovalDecided | TurnCancelRequested | AgentReported):
            parked = self._executor.take_parked(claimed.item.turn, self._journal.last_seq)
            if parked is not None and parked.turn.request is not None:
                return await self._run(claimed, parked.turn, parked.turn.request, parked.epoch, slot, parked)
        # From here on the journal decides. It is read after the monitor that hands the conversation over has stopped
        # writing (ADR 0008). If two monitors write nevertheless, the second writer is Fenced.
        records = await self._settled_records(claimed)
        turn, request = replay_turn(records), requested_by(records, claimed.item)
        if isinstance(claimed.item, TurnSteered) and is_too_late(turn, claimed.item):
            claimed.item = claimed.item.request  # the message starts a new turn
            return await self._handle(claimed, slot)
        if request is None:
            return await self._inbox.settle(claimed)
        if turn.phase is Phase.DONE:
            # A monitor or the server may have crashed after the end was recorded and before the approvals and the fact
            # were published, so both are published again. An approval is appended by compare-and-set (ADR 0025). The
            # fact may be published twice: learning skips a turn that it has learned from (ADR 0022).
            if not claimed.first:
                await self._publish_end(turn, request, PublishedApprovals())
            return await self._inbox.settle(claimed)
        # A monitor or the server may also have crashed after the turn was recorded as parked and before its message was
        # settled. The question and its timers must be published before the message is removed from the inbox: nothing
        # else would resume the turn (ADR 0025).
        if turn.phase is Phase.PARKED and isinstance(claimed.item, TurnRequested):
            await self._approvals.publish_missing(turn, PublishedApprovals())
            return await self._inbox.settle(claimed)
        # Only a turn that must run is checked for its place: the items that are settled above start no turn (ADR 0040).
        if self._journal.unfinished not in (None, request.turn):
            return await self._requeue_behind(self._journal.unfinished, claimed)
        # A call runs only after its approval is in the audit log. The former run may have ended between the two, so the
        # decisions are audited before this run writes to the journal. An immediate cancel does not wait: it runs no
        # call (ADR 0025).
        if not self._is_cancelled(claimed):
            await self._approvals.publish_decisions(turn, PublishedApprovals())
        # Each run has a new epoch, even after a crash of this monitor, so that readers of the feed can distinguish the
        # runs (ADR 0004).
        await self._run(claimed, turn, request, records[-1].epoch + 1 if records else 1, slot)

    async def _requeue_behind(self, first_turn: str, claimed: ClaimedItem) -> None:
        """Queue the item again. Run the turn ahead of the item first, unless that turn waits for a person."""
        if not self._journal.parked and not any(other.item.turn == first_turn for other in self._queue):
            request = await self._journal.request_of(first_turn)
            if request is None:
                log.error(
                    "turn %s is skipped: its journal does not contain its message, so it cannot be ended",
                    first_turn,
                )
                self._journal.skip_unfinished_turn()
            else:
                self._enqueue(RecoveredItem(request, claimed))
        self._enqueue(claimed)

    async def _run(
        self,
        claimed: ClaimedItem,
        turn: Turn,
        request: TurnRequested,
        epoch: int,
        slot: TurnSlot,
        parked: ParkedTurn | None = None,
    ) -> None:
        slot.note_preemptions(turn.preemptions)
        # An item that resumes a turn may not know its lane: the turn's message, which the journal has, decides.
        slot.change(highest_lane((slot.lane, lane_of(request.trigger, request.lane))), slot.is_control)
        # The mailbox is created before the queue is searched, so an item that is offered meanwhile is in one of the
        # two. Cancels and decisions are taken out of the mailbox at once: they apply before the run starts any work,
        # and before a turn without a slot yields.
        controls = [] if isinstance(claimed.item, TurnRequested) else [claimed]
        self._mailbox = TurnMailbox(request.turn)
        for queued in tuple(self._queue):
            if self._mailbox.put(queued):
                self._queue.remove(queued)
        controls.extend(self._mailbox.take_controls())
        run = TurnRun(
            turn=turn,
            request=request,
            epoch=epoch,
            inbox_item=claimed,
            controls=tuple(controls),
            mailbox=self._mailbox,
            journal=self._journal,
            messages=self._messages,
            slot=slot,
            parked=parked,
        )
        try:
            await self._executor.run(run)
        finally:
            # Items that the journal does not have return to the queue, also after an error: they arrived too late for
            # the turn, or the run failed. The runner has settled the items that the journal has.
            self._enqueue(*self._mailbox.unsettled())
            self._mailbox = None
        if isinstance(claimed.item, TurnSteered) and is_too_late(turn, claimed.item):
            return self._enqueue(claimed)
        if turn.phase is Phase.PREEMPTED:
            return self._requeue_preempted(claimed, turn, request)
        # The inbox item is settled last. After a crash before this line the server delivers it again: _handle
        # finds the turn done or parked, publishes what is missing, and settles the item (ADR 0025). After a BusError
        # here the queue does the same.
        await self._publish_end(turn, request, run.published)
        await self._inbox.settle(claimed)

    def _requeue_preempted(self, claimed: ClaimedItem, turn: Turn, request: TurnRequested) -> None:
        """Let a preempted turn wait for a slot. Its inbox item stays claimed, so that the server delivers it again if
        this monitor crashes; then the journal resumes the turn, as after any crash (ADR 100)."""
        self._preempted = {request.turn: turn.preemptions}
        claimed.first = False
        brought = claimed.item.request.message.id if isinstance(claimed.item, TurnSteered) else None
        if brought is None or turn.has_message(brought):  # a message that the turn did not take in is kept
            claimed.item = request
        self._enqueue(claimed)

    async def _publish_end(self, turn: Turn, request: TurnRequested, published: PublishedApprovals) -> None:
        """Publish the approvals of a turn that ended or parked, and the fact that the turn finished, if it did."""
        await self._approvals.publish_missing(turn, published)
        if turn.finished is not None:
            await self._recorder.publish_finished(turn, request, turn.finished)

    async def _settled_records(self, current: ClaimedItem) -> list[TurnRecord]:
        """Wait until a monitor that hands the conversation over has finished the turn; return the turn's journal.

        An immediate cancel does not wait: this monitor takes the turn over at once.
        """
        turn = current.item.turn
        records = await self._journal.replay(turn)
        while records and replay_turn(records).phase not in WAITING_PHASES:
            if self._is_cancelled(current):
                break
            if not await self._membership.is_finishing(records[-1].owner, current.conversation):
                break
            await anyio.sleep(0.3)
            self._journal.forget_last_seq()
            records = await self._journal.replay(turn)
        return records

    def _is_cancelled(self, current: ClaimedItem) -> bool:
        """Report whether this item or a queued one cancels the item's turn at once."""
        return any(
            is_immediate_cancel(claimed.item) and claimed.item.turn == current.item.turn
            for claimed in (current, *self._queue)
        )

    async def _give_up(self, claimed: ClaimedItem) -> None:
        """End the turn with an error, so that clients do not wait forever and the next turn can start.

        May run again after a crash or a BusError: the end that is recorded is then only published.
        """
        entries, epoch = await self._journal.salvage(claimed.item.turn)
        turn = await self._readable_turn(claimed.item.turn)
        missing: tuple[JournalEntry, ...] = ()
        if turn.phase is Phase.NEW and (request := find_request(entries, claimed.item)):
            missing = (TurnStarted(request=request, model=""),)
            turn.apply(missing[0])
        recorded = next((entry for entry in entries if isinstance(entry, TurnFinished)), None)
        if turn.phase is not Phase.NEW and recorded is None:
            await self._executor.give_up(turn, missing, epoch + 1, self._journal)
        elif recorded is not None and turn.phase not in (Phase.NEW, Phase.DONE):
            turn.apply(recorded)
        if turn.request is not None:
            await self._publish_given_up(turn, turn.request)
        if isinstance(claimed.item, TurnSteered) and not (
            turn.request and turn.has_message(claimed.item.request.message.id)
        ):
            claimed.item = claimed.item.request
            return self._enqueue(claimed)
        await self._inbox.settle(claimed)

    async def _publish_given_up(self, turn: Turn, request: TurnRequested) -> None:
        """Publish the end of a turn that was given up. An end that cannot be published at all is logged, because the
        item must leave the inbox. Raises BusError when waiting may help."""
        try:
            await self._publish_end(turn, request, PublishedApprovals())
        except Exception as error:
            if _is_transient(error):
                raise
            log.exception("the end of turn %s, which was given up, could not be published", request.turn)

    async def _readable_turn(self, turn: str) -> Turn:
        """Return the turn by its journal; a new one when the journal cannot be replayed."""
        try:
            return replay_turn(await self._journal.replay(turn))
        except (DecodeError, TurnProtocolError):
            return Turn()


def _is_transient(error: Exception) -> bool:
    """Report whether waiting may help: the bus or a worker is unavailable, or refused with a transient
    code."""
    if isinstance(error, RemoteFault):
        return error.code in TRANSIENT_CODES
    return isinstance(error, BusError) and not isinstance(error, DecodeError | SubjectError)
