"""Read-only lookup of turns in inbox and journal: running, queued and ended ones."""

from collections import OrderedDict
from collections.abc import Callable, Iterable

import anyio
import msgspec

from trunkline.contracts.agents.subjects import TASK_BUCKET
from trunkline.contracts.approvals.subjects import APPROVAL
from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline.contracts.gateway.messages import TurnView
from trunkline.contracts.streams import INBOX_STREAM
from trunkline.contracts.turns.feed_events import is_finished
from trunkline.contracts.turns.journal_messages import (
    ApprovalAsked,
    ApprovalRecorded,
    CancelRecorded,
    JournalEntry,
    ModelCallFinished,
    SteerRecorded,
    TurnFinished,
    TurnParked,
    TurnRecord,
    TurnStarted,
)
from trunkline.contracts.turns.messages import ApprovalDecided, TurnRequested, TurnSteered
from trunkline.contracts.turns.subjects import INBOX, JOURNAL
from trunkline.workers.gateway.ids import is_id
from trunkline_bus import Bus, DecodeError, Scope
from trunkline_bus.backoff import Backoff
from trunkline_bus.streams.admin import subject_counts

FIRST_CHECK, LONGEST_PAUSE = 0.02, 0.5
"""Seconds before the second look at a turn that shall end, and the longest pause between two looks."""

KEPT, KEPT_SECONDS = 16, 120.0
"""The number of turn states that are cached, and for how many seconds. The cache is for people who decide about one
call after another."""


class TurnState:
    """A turn with its journal. A turn without records waits in the inbox.

    Calls, questions and decisions are indexed by call id, so that a decision takes the same time in a turn
    with one call and in one with a thousand.
    """

    def __init__(self, request: TurnRequested, records: Iterable[TurnRecord] = ()) -> None:
        self.request = request
        self.entries: list[JournalEntry] = []
        """All journal entries, in order."""
        self.epoch = 0
        self.finished: TurnFinished | None = None
        """The entry that ended the turn, if it has ended."""
        self.cancelled: CancelRecorded | None = None
        """The entry that cancelled the turn, if it was cancelled."""
        self._calls: dict[str, ToolCall] = {}
        self._asked: dict[str, ApprovalAsked] = {}
        self._decided: dict[str, ApprovalRecorded] = {}
        self.apply(records)

    def apply(self, records: Iterable[TurnRecord]) -> None:
        """Apply further journal records."""
        for record in records:
            self.epoch = record.epoch
            for entry in record.entries:
                self.entries.append(entry)
                self._note(entry)

    def _note(self, entry: JournalEntry) -> None:
        match entry:
            case ModelCallFinished():
                for call in entry.tool_calls:
                    self._calls.setdefault(call.id, call)
            case ApprovalAsked():
                self._asked[entry.call_id] = entry
                self._decided.pop(entry.call_id, None)
            case ApprovalRecorded():
                self._decided[entry.call_id] = entry
            case CancelRecorded():
                self.cancelled = self.cancelled or entry
            case TurnFinished():
                self.finished = self.finished or entry

    @property
    def is_parked(self) -> bool:
        """Report whether the turn waits for a person. One that waits only for agents is at work."""
        if not self.entries or not isinstance(self.entries[-1], TurnParked):
            return False
        return any(call not in self._decided for call in self._asked)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of people in the turn: the initial messages and the steered ones."""
        steered = (entry.message for entry in self.entries if isinstance(entry, SteerRecorded))
        return (*(self.request.preceding or ()), self.request.message, *steered)

    def call(self, id: str) -> ToolCall | None:
        """Return a call of the model."""
        return self._calls.get(id)

    def question(self, call: str) -> ApprovalAsked | None:
        """Return the newest question about a call."""
        return self._asked.get(call)

    def decision(self, call: str) -> ApprovalRecorded | None:
        """Return the decision about a call's newest question, if there is one."""
        return self._decided.get(call)

    def view(self) -> TurnView:
        """Return the turn in the form that clients receive."""
        request, finished = self.request, self.finished
        view = TurnView(
            turn=request.turn,
            block=request.block,
            conversation=request.conversation,
            status="queued",
            traceparent=request.traceparent,
        )
        if not self.entries:
            return view
        view = msgspec.structs.replace(
            view, status="parked" if self.is_parked else "running", epoch=self.epoch
        )
        if finished is None:
            return view
        return msgspec.structs.replace(
            view,
            status="finished",
            reason=finished.reason,
            message_id=finished.message_id,
            code=finished.code,
            usage=finished.usage,
        )


class TurnLookup:
    """Looks turns up.

    Methods raise BusError when the bus does not answer.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._tasks = bus.kv(TASK_BUCKET)
        self._cached: OrderedDict[str, tuple[float, int, TurnState]] = OrderedDict()
        """The turns looked up last that had not ended: expiry time, last journal sequence read, and state."""

    async def find(self, turn: str) -> TurnState | None:
        """Return a turn by its id; None when there is none, or when the text cannot be an id.

        A turn that moves from the inbox to the journal during the lookup is found by the second read of the
        journal.
        """
        if not is_id(turn):
            return None
        started = await self.find_in_journal(turn)
        if started is not None:
            return started
        waiting = [request for request in await self.queued_requests() if request.turn == turn]
        return TurnState(waiting[0]) if waiting else await self.find_in_journal(turn)

    async def has_journal(self, conversation: str, turn: str) -> bool:
        """Report whether the turn has a journal."""
        return await self._bus.last(JOURNAL, conversation=conversation, turn=turn) is not None

    async def wait_for_end(self, turn: str, seconds: float) -> TurnState | None:
        """Return the turn when it has ended; None when it has not within that time."""
        backoff = Backoff(FIRST_CHECK, LONGEST_PAUSE)
        with anyio.move_on_after(seconds):
            while True:
                state = await self.find_in_journal(turn)
                if state is not None and state.finished is not None:
                    return state
                await backoff.sleep()
        return None

    async def block_of(self, conversation: str) -> str | None:
        """Return the block of a conversation with a turn that has not ended.

        None when there is no such turn, or when a later version wrote the last entry. The cost does not
        depend on the number of waiting messages.
        """
        try:
            newest = await self._bus.last(JOURNAL, conversation=conversation)
            if newest is not None and not is_finished(newest.data):
                return newest.envelope.block
            waiting = await self._bus.last(INBOX, conversation=conversation)
        except DecodeError:
            return None
        return waiting.envelope.block if waiting is not None else None

    async def count_queued(self, conversation: str) -> int:
        """Return the number of messages and commands of a conversation in the inbox."""
        filter = INBOX.stored_subject.wildcard_filter(conversation=conversation)
        return sum((await subject_counts(self._bus, INBOX_STREAM, filter)).values())

    async def queued_turns(self, conversation: str) -> tuple[str, ...]:
        """Return the turns of a conversation whose messages are in the inbox."""
        return tuple(request.turn for request in await self._requests(conversation))

    async def journal_tail(self, conversation: str) -> tuple[str, bool]:
        """Return the turn that the journal of a conversation ends with, and whether that turn is parked.

        The turn is "" when there is no journal, and when a later version wrote the last entry.
        """
        try:
            last = await self._bus.last(JOURNAL, conversation=conversation)
        except DecodeError:
            return "", False
        if last is None:
            return "", False
        return last.data.turn, isinstance(last.data.entries[-1], TurnParked)

    async def unfinished(self, conversation: str) -> tuple[TurnState, ...]:
        """Return the turns of a conversation that have not ended, the running one first."""
        waiting = await self._requests(conversation)
        last = await self._bus.last(JOURNAL, conversation=conversation)
        started = await self.find_in_journal(last.data.turn) if last is not None else None
        states = [] if started is None or started.finished else [started]
        known = started.request.turn if started is not None else ""
        return (*states, *(TurnState(request) for request in waiting if request.turn != known))

    async def newest_turn(self, conversation: str) -> str | None:
        """Return the newest turn of a conversation, queued, running or ended; None when none is stored any
        more."""
        waiting = await self._requests(conversation)
        last = await self._bus.last(JOURNAL, conversation=conversation)
        started = last.data.turn if last is not None else None
        others = [request.turn for request in waiting if request.turn != started]
        return others[-1] if others else started

    async def queued_requests(self) -> tuple[TurnRequested, ...]:
        """Return all messages in the inbox, of every conversation."""
        return await self._requests(None)

    async def unfinished_in_block(self, block: str) -> tuple[Scope, ...]:
        """Return the turns of a block that have not ended: turns with an item in the inbox, and turns that wait for a
        person."""
        found: dict[str, Scope] = {}
        async for stored in self._bus.history(INBOX, after=0):
            item, conversation = stored.data, stored.keys["conversation"]
            about = item.request if isinstance(item, TurnSteered) else item
            if block == (about.block if isinstance(about, TurnRequested) else stored.envelope.block):
                found[about.turn] = Scope(block=block, conversation=conversation, turn=about.turn)
        async for asked in self._bus.history(APPROVAL, after=0):
            one = asked.data
            if (
                one.block == block
                and one.settled is None
                and one.turn not in found
                and await self._is_open(one.turn)
            ):
                found[one.turn] = Scope(block=block, conversation=one.conversation, turn=one.turn)
        for scope in await self._delegating():
            if scope.block == block and scope.turn not in found and await self._is_open(scope.turn or ""):
                found[scope.turn or ""] = scope
        return tuple(found.values())

    async def unfinished_requests(self, matches: Callable[[TurnRequested], bool]) -> tuple[Scope, ...]:
        """Return the turns whose requests match and that have not ended: queued, running, and waiting for a person."""
        found: dict[str, Scope] = {}
        known: dict[str, Scope] = {}
        async for stored in self._bus.history(INBOX, after=0):
            item, conversation = stored.data, stored.keys["conversation"]
            request = item.request if isinstance(item, TurnSteered) else item
            scope = Scope(block=stored.envelope.block, conversation=conversation, turn=request.turn)
            if not isinstance(request, TurnRequested):
                known[request.turn] = scope
            elif matches(request):
                found[request.turn] = scope
        async for asked in self._bus.history(APPROVAL, after=0):
            one = asked.data
            if one.settled is None:
                known[one.turn] = Scope(block=one.block, conversation=one.conversation, turn=one.turn)
        known |= {scope.turn or "": scope for scope in await self._delegating()}
        for turn in known.keys() - found.keys():
            state = await self.find_in_journal(turn)
            if state is not None and state.finished is None and matches(state.request):
                found[turn] = known[turn]
        return tuple(found.values())

    async def _delegating(self) -> list[Scope]:
        """Return the turns with running tasks of agents: one that waits for an agent has neither an inbox item nor an
        approval.
        """
        tasks = [entry.value for entry in await self._tasks.entries()]
        return [
            Scope(block=task.parent.block, conversation=task.parent.conversation, turn=task.parent.turn)
            for task in tasks
            if task is not None and task.is_running
        ]

    async def _is_open(self, turn: str) -> bool:
        state = await self.find_in_journal(turn)
        return state is not None and state.finished is None

    async def queued_decision(self, decision: ApprovalDecided, conversation: str) -> ApprovalDecided | None:
        """Return the first decision about the same question that is in the inbox."""
        question = (decision.turn, decision.call, decision.call_hash)
        async for stored in self._bus.history(INBOX, after=0, conversation=conversation):
            item = stored.data
            if isinstance(item, ApprovalDecided) and (item.turn, item.call, item.call_hash) == question:
                return item
        return None

    async def find_in_journal(self, turn: str) -> TurnState | None:
        """Return a turn from its journal. For a turn in the cache only the new records are read."""
        last = await self._bus.last(JOURNAL, turn=turn)
        if last is None:
            return None
        seq, state = self._take_cached(turn)
        if state is None or seq > last.seq:
            seq, state = 0, None
        keys = {"turn": turn, "conversation": last.keys["conversation"]}
        records: list[TurnRecord] = []
        try:
            if seq < last.seq:
                async for stored in self._bus.history(JOURNAL, after=seq, **keys):
                    records.append(stored.data)
                    seq = stored.seq
        except (
            DecodeError
        ):  # a later version wrote it; the last record of an abandoned turn repeats its request
            return _state([last.data])
        if state is None:
            state = _state(records)
        else:
            state.apply(records)
        self._cache(turn, seq, state)
        return state

    def _take_cached(self, turn: str) -> tuple[int, TurnState | None]:
        """Remove and return a cache entry. It is removed because two concurrent readers would apply the same
        records twice."""
        _, seq, state = self._cached.pop(turn, (0.0, 0, None))
        return seq, state

    def _cache(self, turn: str, seq: int, state: TurnState | None) -> None:
        now = anyio.current_time()
        if state is not None and state.finished is None:
            self._cached[turn] = (now + KEPT_SECONDS, seq, state)
            self._cached.move_to_end(turn)
        while self._cached and (len(self._cached) > KEPT or next(iter(self._cached.values()))[0] < now):
            self._cached.popitem(last=False)

    async def _requests(self, conversation: str | None) -> tuple[TurnRequested, ...]:
        keys = {} if conversation is None else {"conversation": conversation}
        items = [stored.data async for stored in self._bus.history(INBOX, after=0, **keys)]
        found = [item for item in items if isinstance(item, TurnRequested)]
        steered = [item.request for item in items if isinstance(item, TurnSteered)]
        return (*found, *steered)


def _state(records: Iterable[TurnRecord]) -> TurnState | None:
    stored_records = tuple(records)
    for record in stored_records:
        for entry in record.entries:
            if isinstance(entry, TurnStarted):
                return TurnState(entry.request, stored_records)
    return None
