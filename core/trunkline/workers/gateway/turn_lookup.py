"""What inbox and journal know of turns: which run, which wait, how one ended. Reads only."""

from collections import OrderedDict
from collections.abc import Iterable

import anyio
import msgspec

from trunkline.contracts.approvals.subjects import APPROVAL
from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline.contracts.gateway.messages import TurnView
from trunkline.contracts.streams import INBOX_STREAM
from trunkline.contracts.turns.feed_events import is_finished
from trunkline.contracts.turns.messages import (
    ApprovalAsked,
    ApprovalDecided,
    ApprovalRecorded,
    CancelRecorded,
    JournalEntry,
    ModelCallFinished,
    SteerRecorded,
    TurnFinished,
    TurnParked,
    TurnRecord,
    TurnRequested,
    TurnStarted,
    TurnSteered,
)
from trunkline.contracts.turns.subjects import INBOX, JOURNAL
from trunkline.workers.gateway.ids import is_id
from trunkline_bus import Bus, DecodeError, Scope
from trunkline_bus.streams.admin import subject_counts

KEPT, KEPT_SECONDS = 16, 120.0
"""How many turns are remembered as they stand, and for how long: people decide about the calls of one after another."""


class TurnState:
    """A turn with its journal; without records it waits in the inbox. What is asked often is known by call, so that a
    decision costs the same in a turn of one call and in one of a thousand."""

    def __init__(self, request: TurnRequested, records: Iterable[TurnRecord] = ()) -> None:
        self.request = request
        self.entries: list[JournalEntry] = []
        """All that is recorded, in order."""
        self.epoch = 0
        self.finished: TurnFinished | None = None
        """How the turn ended, if it has."""
        self.cancelled: CancelRecorded | None = None
        """Who ended it, and how, if somebody did."""
        self._calls: dict[str, ToolCall] = {}
        self._asked: dict[str, ApprovalAsked] = {}
        self._decided: dict[str, ApprovalRecorded] = {}
        self.apply(records)

    def apply(self, records: Iterable[TurnRecord]) -> None:
        """Take in what was recorded since."""
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
        """Report whether it waits for a person."""
        return bool(self.entries) and isinstance(self.entries[-1], TurnParked)

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said in it: what it began with, and the messages taken in later."""
        steered = (entry.message for entry in self.entries if isinstance(entry, SteerRecorded))
        return (*(self.request.preceding or ()), self.request.message, *steered)

    def call(self, id: str) -> ToolCall | None:
        """A call of the model."""
        return self._calls.get(id)

    def question(self, call: str) -> ApprovalAsked | None:
        """The newest question about a call."""
        return self._asked.get(call)

    def decision(self, call: str) -> ApprovalRecorded | None:
        """The decision about a call's newest question, if there is one."""
        return self._decided.get(call)

    def view(self) -> TurnView:
        """The turn as clients see it."""
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
    """Looks turns up. Raises BusError when the bus does not answer."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._lately: OrderedDict[str, tuple[float, int, TurnState]] = OrderedDict()
        """The turns looked up last that had not ended: until when they are kept, and how far each journal was read."""

    async def find(self, turn: str) -> TurnState | None:
        """A turn by its id; none has what is no id. One that moves from the inbox to the journal meanwhile is found at
        the second look."""
        if not is_id(turn):
            return None
        begun = await self.find_begun(turn)
        if begun is not None:
            return begun
        waiting = [request for request in await self.queued_requests() if request.turn == turn]
        return TurnState(waiting[0]) if waiting else await self.find_begun(turn)

    async def has_journal(self, conversation: str, turn: str) -> bool:
        """Report whether the turn has a journal."""
        return await self._bus.last(JOURNAL, conversation=conversation, turn=turn) is not None

    async def block_of(self, conversation: str) -> str | None:
        """The block of a conversation that has a turn which has not ended; None when none has, or when a later version
        wrote what stands at the end. Costs the same however many wait."""
        try:
            newest = await self._bus.last(JOURNAL, conversation=conversation)
            if newest is not None and not is_finished(newest.data):
                return newest.envelope.block
            waiting = await self._bus.last(INBOX, conversation=conversation)
        except DecodeError:
            return None
        return waiting.envelope.block if waiting is not None else None

    async def count_queued(self, conversation: str) -> int:
        """How many messages, and wishes about turns, of a conversation the inbox holds."""
        filter = INBOX.stored_subject.wildcard_filter(conversation=conversation)
        return sum((await subject_counts(self._bus, INBOX_STREAM, filter)).values())

    async def queued_turns(self, conversation: str) -> tuple[str, ...]:
        """The turns of a conversation whose messages the inbox holds."""
        return tuple(request.turn for request in await self._requests(conversation))

    async def journal_tail(self, conversation: str) -> tuple[str, bool]:
        """The turn that the journal of a conversation ends with, and whether that one is parked; "" for none, and for
        one that a later version wrote."""
        try:
            last = await self._bus.last(JOURNAL, conversation=conversation)
        except DecodeError:
            return "", False
        if last is None:
            return "", False
        return last.data.turn, isinstance(last.data.entries[-1], TurnParked)

    async def unfinished(self, conversation: str) -> tuple[TurnState, ...]:
        """The turns of a conversation that have not ended, the running one first."""
        waiting = await self._requests(conversation)
        last = await self._bus.last(JOURNAL, conversation=conversation)
        begun = await self.find_begun(last.data.turn) if last is not None else None
        states = [] if begun is None or begun.finished else [begun]
        known = begun.request.turn if begun is not None else ""
        return (*states, *(TurnState(request) for request in waiting if request.turn != known))

    async def newest_turn(self, conversation: str) -> str | None:
        """The turn that came last in a conversation, waiting, running or ended; None when none is kept any more."""
        waiting = await self._requests(conversation)
        last = await self._bus.last(JOURNAL, conversation=conversation)
        begun = last.data.turn if last is not None else None
        others = [request.turn for request in waiting if request.turn != begun]
        return others[-1] if others else begun

    async def queued_requests(self) -> tuple[TurnRequested, ...]:
        """All messages in the inbox, whatever conversation they belong to."""
        return await self._requests(None)

    async def unfinished_in_block(self, block: str) -> tuple[Scope, ...]:
        """The turns of a block that have not ended: those that the inbox has something about, waiting or running, and
        those that wait for a person."""
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
        return tuple(found.values())

    async def _is_open(self, turn: str) -> bool:
        state = await self.find_begun(turn)
        return state is not None and state.finished is None

    async def queued_decision(self, decision: ApprovalDecided, conversation: str) -> ApprovalDecided | None:
        """The first decision about the same question that waits in the inbox."""
        question = (decision.turn, decision.call, decision.call_hash)
        async for stored in self._bus.history(INBOX, after=0, conversation=conversation):
            item = stored.data
            if isinstance(item, ApprovalDecided) and (item.turn, item.call, item.call_hash) == question:
                return item
        return None

    async def find_begun(self, turn: str) -> TurnState | None:
        """The turn by its journal. Of one that was looked up a moment ago only what is new is read."""
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
        except DecodeError:  # a later version wrote it; a turn that was given up says what it was at its end
            return _state([last.data])
        if state is None:
            state = _state(records)
        else:
            state.apply(records)
        self._cache(turn, seq, state)
        return state

    def _take_cached(self, turn: str) -> tuple[int, TurnState | None]:
        """Taken out, since two who look at once would add the same to it."""
        _, seq, state = self._lately.pop(turn, (0.0, 0, None))
        return seq, state

    def _cache(self, turn: str, seq: int, state: TurnState | None) -> None:
        now = anyio.current_time()
        if state is not None and state.finished is None:
            self._lately[turn] = (now + KEPT_SECONDS, seq, state)
            self._lately.move_to_end(turn)
        while self._lately and (len(self._lately) > KEPT or next(iter(self._lately.values()))[0] < now):
            self._lately.popitem(last=False)

    async def _requests(self, conversation: str | None) -> tuple[TurnRequested, ...]:
        keys = {} if conversation is None else {"conversation": conversation}
        items = [stored.data async for stored in self._bus.history(INBOX, after=0, **keys)]
        found = [item for item in items if isinstance(item, TurnRequested)]
        steered = [item.request for item in items if isinstance(item, TurnSteered)]
        return (*found, *steered)


def _state(records: Iterable[TurnRecord]) -> TurnState | None:
    kept = tuple(records)
    for record in kept:
        for entry in record.entries:
            if isinstance(entry, TurnStarted):
                return TurnState(entry.request, kept)
    return None
