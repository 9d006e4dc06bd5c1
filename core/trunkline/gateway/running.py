"""What inbox and journal know of turns: which run, which wait, how one ended. Reads only."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from trunkline.messages.conversation import Message, ToolCall
from trunkline.messages.gateway import TurnView
from trunkline.messages.turn import (
    ApprovalAsked,
    ApprovalDecided,
    ApprovalRecorded,
    Finished,
    JournalEntry,
    ModelCallFinished,
    Parked,
    Started,
    Steered,
    TurnRecord,
    TurnRequested,
    TurnSteered,
)
from trunkline.subjects import INBOX, JOURNAL
from trunkline_bus import Bus, DecodeError


@dataclass(frozen=True, slots=True)
class TurnState:
    """A turn with its journal; without records it waits in the inbox."""

    request: TurnRequested
    records: tuple[TurnRecord, ...] = ()

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """All that is recorded, in order."""
        return tuple(entry for record in self.records for entry in record.entries)

    @property
    def finished(self) -> Finished | None:
        """How the turn ended, if it has."""
        return next((entry for entry in self.entries if isinstance(entry, Finished)), None)

    @property
    def said(self) -> tuple[Message, ...]:
        """What people said in it: the message it began with, and those taken in later."""
        steered = (entry.message for entry in self.entries if isinstance(entry, Steered))
        return (self.request.message, *steered)

    def call(self, id: str) -> ToolCall | None:
        """A call of the model."""
        answers = (entry for entry in self.entries if isinstance(entry, ModelCallFinished))
        return next((call for answer in answers for call in answer.tool_calls if call.id == id), None)

    def asked(self, call: str) -> ApprovalAsked | None:
        """The newest question about a call."""
        asked = [
            entry for entry in self.entries if isinstance(entry, ApprovalAsked) and entry.call_id == call
        ]
        return asked[-1] if asked else None

    def decided(self, call: str) -> ApprovalRecorded | None:
        """The decision about a call's newest question, if there is one."""
        found: ApprovalRecorded | None = None
        for entry in self.entries:
            if isinstance(entry, ApprovalAsked | ApprovalRecorded) and entry.call_id == call:
                found = entry if isinstance(entry, ApprovalRecorded) else None
        return found

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
        if not self.records:
            return view
        parked = isinstance(self.entries[-1], Parked) if self.entries else False
        view = msgspec.structs.replace(
            view, status="parked" if parked else "running", epoch=self.records[-1].epoch
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


class Turns:
    """Looks turns up. Raises BusError when the bus does not answer."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def find(self, turn: str) -> TurnState | None:
        """A turn by its id. One that moves from the inbox to the journal meanwhile is found at the second look."""
        begun = await self._begun(turn)
        if begun is not None:
            return begun
        waiting = [request for request in await self.waiting() if request.turn == turn]
        return TurnState(waiting[0]) if waiting else await self._begun(turn)

    async def is_begun(self, conversation: str, turn: str) -> bool:
        """Whether the turn has a journal."""
        return await self._bus.last(JOURNAL, conversation=conversation, turn=turn) is not None

    async def under_way(self, conversation: str) -> tuple[TurnState, ...]:
        """The turns of a conversation that have not ended, the running one first."""
        waiting = await self._requests(conversation)
        last = await self._bus.last(JOURNAL, conversation=conversation)
        begun = await self._begun(last.data.turn) if last is not None else None
        states = [] if begun is None or begun.finished else [begun]
        known = begun.request.turn if begun is not None else ""
        return (*states, *(TurnState(request) for request in waiting if request.turn != known))

    async def waiting(self) -> tuple[TurnRequested, ...]:
        """All messages in the inbox, whatever conversation they belong to."""
        return await self._requests(None)

    async def decision(self, decision: ApprovalDecided, conversation: str) -> ApprovalDecided | None:
        """The first decision about the same question that waits in the inbox."""
        question = (decision.turn, decision.call, decision.call_hash)
        async for stored in self._bus.history(INBOX, after=0, conversation=conversation):
            item = stored.data
            if isinstance(item, ApprovalDecided) and (item.turn, item.call, item.call_hash) == question:
                return item
        return None

    async def _begun(self, turn: str) -> TurnState | None:
        """The turn by its journal."""
        last = await self._bus.last(JOURNAL, turn=turn)
        if last is None:
            return None
        keys = {"turn": turn, "conversation": last.keys["conversation"]}
        try:
            return _state([stored.data async for stored in self._bus.history(JOURNAL, after=0, **keys)])
        except DecodeError:  # a later version wrote it; a turn that was given up says what it was at its end
            return _state([last.data])

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
            if isinstance(entry, Started):
                return TurnState(entry.request, kept)
    return None
