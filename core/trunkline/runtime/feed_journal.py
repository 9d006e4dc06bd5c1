"""What the feed of a finished turn would say, told from its journal: for a feed that was lost or has expired.

Pure: records in, feed items out. The journal of a finished turn does not change, so neither do the items.
"""

from collections.abc import Iterable, Iterator

from trunkline.errors import FIXED_SENTENCES
from trunkline.messages.conversation import ToolCall
from trunkline.messages.turn import (
    ApprovalAsked,
    ApprovalRecorded,
    CancelRecorded,
    FeedEvent,
    FeedItem,
    Finished,
    JournalEntry,
    MessageSteered,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallPlanned,
    ReasoningDelta,
    Started,
    Steered,
    TextDelta,
    ToolEnded,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnRecord,
    approval_requested,
    approval_settled,
    denial,
)

JOURNAL_EPOCH = 1_000_000_000
"""The epoch of items told from the journal: above every real one, so nothing of the feed comes after them."""


def is_finished(record: TurnRecord) -> bool:
    """Whether the record ends its turn."""
    return any(isinstance(entry, Finished) for entry in record.entries)


def told_from_journal(records: Iterable[TurnRecord]) -> list[FeedItem]:
    """The feed items of a finished turn, from all its records in order."""
    teller = _Teller()
    entries = [(record.turn, entry) for record in records for entry in record.entries]
    events = [(turn, event) for turn, entry in entries for event in teller.tell(entry)]
    return [
        FeedItem(turn=turn, epoch=JOURNAL_EPOCH, index=index, event=event)
        for index, (turn, event) in enumerate(events)
    ]


class _Teller:
    def __init__(self) -> None:
        self._turn = ""
        self._step = 0
        self._calls: dict[str, ToolCall] = {}
        self._client_tools: frozenset[str] = frozenset()

    def tell(self, entry: JournalEntry) -> Iterator[FeedEvent]:
        match entry:
            case Started(request=request, statuses=statuses):
                self._turn = request.turn
                self._client_tools = frozenset(tool.name for tool in request.client_tools)
                yield from statuses or ()
            case ModelCallPlanned(step=step):
                self._step = step
            case ModelCallFinished():
                yield from self._answer(entry)
            case ModelCallFailed(partial=partial) | CancelRecorded(partial=partial):
                yield from self._said(partial)
            case ToolFinished(outcome=outcome, call_id=call_id) if outcome.status != "approval":
                yield ToolEnded(
                    step=self._step,
                    call_id=call_id,
                    name=self._calls[call_id].name if call_id in self._calls else "",
                    output=outcome.output,
                    error=outcome.status != "ok",
                )
            case ApprovalAsked() if entry.call_id in self._calls:
                yield approval_requested(self._turn, self._calls[entry.call_id], entry)
            case ApprovalRecorded():
                yield from self._settled(entry)
            case Steered(message=message):
                yield MessageSteered(message=message)
            case Finished():
                yield _ended(entry)

    def _answer(self, entry: ModelCallFinished) -> Iterator[FeedEvent]:
        self._step = entry.step
        if entry.reasoning:
            yield ReasoningDelta(step=entry.step, offset=0, text=entry.reasoning)
        yield from self._said(entry.text)
        for ran in entry.ran:
            yield ToolStarted(step=entry.step, call=ran.call)
            yield ToolEnded(
                step=entry.step, call_id=ran.call.id, name=ran.call.name, output=ran.output, error=ran.error
            )
        for call in entry.tool_calls:
            self._calls[call.id] = call
            yield ToolStarted(step=entry.step, call=call, client=call.name in self._client_tools)

    def _settled(self, entry: ApprovalRecorded) -> Iterator[FeedEvent]:
        yield approval_settled(entry)
        if not entry.allow and entry.call_id in self._calls:
            name = self._calls[entry.call_id].name
            text = denial(name, entry.by)
            yield ToolEnded(step=self._step, call_id=entry.call_id, name=name, output=text, error=True)

    def _said(self, text: str) -> Iterator[FeedEvent]:
        if text:
            yield TextDelta(step=self._step, offset=0, text=text)


def _ended(entry: Finished) -> TurnEnded:
    return TurnEnded(
        reason=entry.reason,
        message_id=entry.message_id,
        usage=entry.usage,
        code=entry.code,
        sentence=FIXED_SENTENCES[entry.code] if entry.code else None,
    )
