"""The feed events of a turn, derived from its journal: while the turn runs, again by a new owner, and for a feed that
was lost.

Pure: entries in, events out. A journal only grows, so every derivation yields the same events in the same order, and
each event keeps its number.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from trunkline.contracts.approvals.messages import approval_id
from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.turns.feed_messages import (
    ApprovalRequested,
    ApprovalSettled,
    FeedEvent,
    FeedItem,
    MessageSteered,
    ReasoningDelta,
    TextDelta,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    lane_status,
)
from trunkline.contracts.turns.journal_messages import (
    ApprovalAsked,
    ApprovalRecorded,
    CancelRecorded,
    JournalEntry,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallPlanned,
    ProviderToolResult,
    SteerRecorded,
    ToolFinished,
    TurnFinished,
    TurnPreempted,
    TurnRecord,
    TurnResumed,
    TurnStarted,
    denial_text,
)
from trunkline.contracts.turns.lanes import Lane, lane_of, recorded_lane
from trunkline.errors import FIXED_SENTENCES

JOURNAL_EPOCH = 1_000_000_000
"""The epoch of items derived from the journal. It is above every real epoch, so no feed item follows them."""


def is_finished(record: TurnRecord) -> bool:
    """Report whether the record ends its turn."""
    return any(isinstance(entry, TurnFinished) for entry in record.entries)


class NumberedEvent(NamedTuple):
    """An event and its number among the events of the journal; see ``FeedItem``."""

    event: FeedEvent
    number: int | UnsetType = UNSET


def feed_items_from_journal(records: Iterable[TurnRecord]) -> list[FeedItem]:
    """Return the feed items of a finished turn, from all its records in order."""
    translator, kept = JournalTranslator(), list(records)
    started = (one for record in kept for one in record.entries if isinstance(one, TurnStarted))
    lane: Lane | UnsetType = next(
        (recorded_lane(lane_of(one.request.trigger, one.request.lane)) for one in started), UNSET
    )
    events = [
        (record.turn, one)
        for record in kept
        for entry in record.entries
        for one in translator.translate(entry)
    ]
    return [
        FeedItem(turn=turn, epoch=JOURNAL_EPOCH, index=index, event=one.event, number=one.number, lane=lane)
        for index, (turn, one) in enumerate(events)
    ]


class JournalTranslator:
    """Translates journal entries, which must be passed in the journal's order. Without the beginning of the journal
    the numbers are unknown, so the events have none.
    """

    def __init__(self) -> None:
        self._turn = ""
        self._step = 0
        self._calls: dict[str, ToolCall] = {}
        self._asked: dict[str, ApprovalAsked] = {}
        self._client_tools: frozenset[str] = frozenset()
        self._preemptions, self._waits = 0, False
        self._count: int | UnsetType = UNSET

    def translate(self, entry: JournalEntry) -> Iterator[NumberedEvent]:
        """Yield all events of the entry."""
        return (event for event, _ in self._numbered(entry))

    def translate_new(self, entry: JournalEntry) -> Iterator[NumberedEvent]:
        """Yield the events of the entry without those already shown while the model answered: text, and the tool
        calls that the provider ran.
        """
        return (event for event, came_before in self._numbered(entry) if not came_before)

    def _numbered(self, entry: JournalEntry) -> Iterator[tuple[NumberedEvent, bool]]:
        if isinstance(entry, TurnStarted):
            self._count = 0
        for event, came_before in self._events(entry):
            if isinstance(event, TextDelta | ReasoningDelta | TurnEnded):
                yield NumberedEvent(event), came_before
            else:
                yield NumberedEvent(event, self._count), came_before
                self._count = UNSET if self._count is UNSET else self._count + 1

    def _events(self, entry: JournalEntry) -> Iterator[tuple[FeedEvent, bool]]:
        """Yield the events, each with whether it was already shown while the model answered."""
        match entry:
            case ModelCallPlanned(step=step):
                self._step = step
            case ModelCallFinished():
                yield from ((event, True) for event in self._answer(entry))
                yield from ((event, False) for event in self._asked_for(entry))
            case ModelCallFailed(partial=partial) | CancelRecorded(partial=partial):
                yield from ((event, True) for event in self._said(partial))
            case _:
                yield from ((event, False) for event in self._happened(entry))

    def _happened(self, entry: JournalEntry) -> Iterator[FeedEvent]:
        match entry:
            case TurnStarted(request=request, statuses=statuses):
                self._turn = request.turn
                self._client_tools = frozenset(tool.name for tool in request.client_tools)
                yield from statuses or ()
            case ToolFinished(outcome=outcome, call_id=call_id) if outcome.status != "approval":
                yield ToolEnded(
                    step=self._step,
                    call_id=call_id,
                    name=self._calls[call_id].name if call_id in self._calls else "",
                    output=outcome.output,
                    error=outcome.status != "ok",
                    error_kind=outcome.kind or "",
                    stored=outcome.stored,
                    files=outcome.files,
                )
            case ApprovalAsked() if entry.call_id in self._calls:
                self._asked[entry.call_id] = entry
                yield approval_requested(self._turn, self._calls[entry.call_id], entry)
            case ApprovalRecorded():
                yield from self._settled(entry)
            case SteerRecorded(message=message):
                yield MessageSteered(message=message)
            case TurnPreempted():
                self._waits, self._preemptions = True, self._preemptions + 1
                yield lane_status(self._preemptions, waiting=True)
            case TurnResumed() if self._waits:
                self._waits = False
                yield lane_status(self._preemptions, waiting=False)
            case TurnFinished():
                yield _turn_ended(entry)

    def _answer(self, entry: ModelCallFinished) -> Iterator[FeedEvent]:
        """Yield the events of an answer, with the provider's tool calls at their places in the text."""
        self._step = entry.step
        early = len(entry.reasoning) - entry.late_reasoning
        if entry.reasoning[:early]:
            yield ReasoningDelta(step=entry.step, offset=0, text=entry.reasoning[:early])
        begin = 0
        for ran in entry.ran:
            yield from self._said(entry.text, begin, ran.at)
            begin = max(begin, ran.at)
            yield from provider_tool_events(entry.step, ran)
        yield from self._said(entry.text, begin)
        if entry.reasoning[early:]:
            yield ReasoningDelta(step=entry.step, offset=early, text=entry.reasoning[early:])

    def _asked_for(self, entry: ModelCallFinished) -> Iterator[FeedEvent]:
        for call in entry.tool_calls:
            self._calls[call.id] = call
            yield ToolStarted(step=entry.step, call=call, client=call.name in self._client_tools)

    def _settled(self, entry: ApprovalRecorded) -> Iterator[FeedEvent]:
        asked = self._asked.get(entry.call_id)
        yield approval_settled(self._turn, entry, asked)
        if not entry.allow and asked is not None and not asked.is_question:
            name = self._calls[entry.call_id].name
            text = denial_text(name, entry.by)
            yield ToolEnded(
                step=self._step,
                call_id=entry.call_id,
                name=name,
                output=text,
                error=True,
                error_kind="approval_denied",
            )

    def _said(self, text: str, begin: int = 0, end: int | None = None) -> Iterator[FeedEvent]:
        if piece := text[begin:end]:
            yield TextDelta(step=self._step, offset=begin, text=piece)


def provider_tool_events(step: int, ran: ProviderToolResult) -> tuple[FeedEvent, FeedEvent]:
    """Return the events of a tool call that the provider ran: the start and the result."""
    ended = ToolEnded(
        step=step,
        call_id=ran.call.id,
        name=ran.call.name,
        output=ran.output,
        error=ran.error,
        error_kind="upstream_error" if ran.error else "",
    )
    return ToolStarted(step=step, call=ran.call), ended


def _turn_ended(entry: TurnFinished) -> TurnEnded:
    return TurnEnded(
        reason=entry.reason,
        message_id=entry.message_id,
        usage=entry.usage,
        code=entry.code,
        sentence=FIXED_SENTENCES[entry.code] if entry.code else None,
        detail=entry.detail,
        context=entry.context,
        cost=entry.cost,
        answered_by=entry.answered_by,
    )


def approval_requested(turn: str, call: ToolCall, request: ApprovalAsked) -> ApprovalRequested:
    """Return the event that shows an approval to people."""
    return ApprovalRequested(
        call=call,
        call_hash=request.call_hash,
        question=request.question,
        id=_id_of(turn, request),
        asked_at=request.asked_at,
        expires_at=request.expires_at,
        detail=request.detail,
    )


def _id_of(turn: str, request: ApprovalAsked) -> str | UnsetType:
    at = request.asked_at
    return at if isinstance(at, UnsetType) else approval_id(turn, request.call_id, at)


def approval_settled(turn: str, recorded: ApprovalRecorded, request: ApprovalAsked | None) -> ApprovalSettled:
    """Return the event that shows the decision about an approval to people."""
    return ApprovalSettled(
        call_id=recorded.call_id,
        allow=recorded.allow,
        by=recorded.by,
        scope=recorded.scope,
        answer=recorded.answer,
        id=UNSET if request is None else _id_of(turn, request),
    )
