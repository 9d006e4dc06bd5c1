"""Builds the context view of a turn from its journal and the stored conversation. Pure: nothing is looked up in today's
files, and the messages are those of ``turn_messages``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import Message, Usage
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.models.token_estimate import (
    MIN_BYTES_PER_TOKEN,
    TOKENS_PER_IMAGE,
    estimate_message_tokens,
    estimate_text_tokens,
)
from trunkline.contracts.turns.context_view import SentPart, SentPartKind
from trunkline.contracts.turns.journal_messages import (
    JournalEntry,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallPlanned,
    OfferedTool,
    RecordedPart,
    TurnStarted,
)
from trunkline.workers.monitor.attachment_loader import files_to_send
from trunkline.workers.monitor.context_budget import BOOTSTRAP, SEPARATOR
from trunkline.workers.monitor.turn import Turn
from trunkline.workers.monitor.turn_messages import message_id, model_messages, new_messages


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A model call in a turn's journal: the turn as it was then, the model that answered, which a fallback may have
    been, the summary record that was used, the tools that were offered, and what the vendor counted."""

    step: int
    turn: Turn
    model: str
    record: SummaryRecord | None
    tools: tuple[OfferedTool, ...]
    usage: Usage


def last_model_call(entries: Sequence[JournalEntry]) -> RecordedCall | None:
    """Return the last call of a model in a turn; None if no model was called, as for a person's ``/tool``."""
    answers = [one for one in entries if isinstance(one, ModelCallFinished)]
    commanded = {one.step for one in answers if one.commanded}
    plans = [
        number
        for number, one in enumerate(entries)
        if isinstance(one, ModelCallPlanned) and one.step not in commanded
    ]
    if not plans:
        return None
    turn = Turn()
    for entry in entries[: plans[-1]]:
        turn.apply(entry)
    answer = next((one for one in answers if one.step == turn.step), ModelCallFinished(step=turn.step))
    record = answer.summary_record or turn.summary_record
    asked = turn.started.model if turn.started is not None else ""
    return RecordedCall(turn.step, turn, answer.answered_by or asked, record, _offered(entries), answer.usage)


def _offered(entries: Sequence[JournalEntry]) -> tuple[OfferedTool, ...]:
    """Return the tools that were recorded last."""
    calls = (one for one in reversed(entries) if isinstance(one, ModelCallFinished | ModelCallFailed))
    return next((one.tools for one in calls if one.tools), ())


def sent_parts(call: RecordedCall, history: Sequence[Message], *, texts: bool) -> tuple[SentPart, ...]:
    """Return the parts of the call's request in the order in which vendors read them. ``history`` is the history as the
    model was sent it. With a count of the vendor, the parts have their shares of it."""
    started = call.turn.started
    assert started is not None
    messages = model_messages(started.context, history, new_messages(call.turn))
    earlier = frozenset(message.id for message in history)
    parts = [SentPart(kind="tool", name=tool.name, tokens=tool.tokens) for tool in call.tools]
    files = _file_tokens(messages, started.request.turn)
    for message in messages:
        parts += _parts_of(message, call, earlier, files.get(message.id, 0))
    parts = parts if texts else [replace(part, text="") for part in parts]
    return tuple(_shares(parts, call.usage)) if call.usage.input_tokens else tuple(parts)


def _parts_of(
    message: Message, call: RecordedCall, earlier: frozenset[str], files: int
) -> Iterator[SentPart]:
    """Yield the parts of a message: those of the context, or the message itself."""
    started = call.turn.started
    assert started is not None
    id = started.request.turn
    if message.id == message_id(id, "context", "system"):
        yield from _context_parts(message, started, "context")
    elif message.id == message_id(id, "context", "user"):
        yield from _context_parts(message, started, "recall")
    else:
        yield SentPart(
            kind=_kind(message, call, earlier),
            name=f"{message.role} {message.name or ''}".rstrip(),
            tokens=estimate_message_tokens((message,)) + files,
            message=message.id,
            text=message.content,
        )


def _kind(message: Message, call: RecordedCall, earlier: frozenset[str]) -> SentPartKind:
    if message.role == "system":
        return "instructions"
    if call.record is not None and message.id == call.record.id:
        return "summary"
    if message.id in earlier:
        return "history"
    return "message" if message.role == "user" else "turn"


def _context_parts(message: Message, started: TurnStarted, kind: SentPartKind) -> Iterator[SentPart]:
    """Yield the parts of a context message. A journal of an earlier version has one part."""
    recorded = [one for one in started.parts or () if one.changing == (kind == "recall")]
    at = 0
    for one in recorded or [RecordedPart(source=kind, characters=len(message.content))]:
        text = message.content[at : at + one.characters]
        at += one.characters + len(SEPARATOR)
        part: SentPartKind = "bootstrap" if kind == "context" and one.source == BOOTSTRAP else kind
        yield SentPart(kind=part, name=one.source, tokens=estimate_text_tokens(text), text=text)


def _file_tokens(messages: Sequence[Message], turn: str) -> dict[str, int]:
    """Return the estimated tokens of the files that were sent with each message."""
    sent, found = files_to_send(messages, turn), dict[str, int]()
    for message in messages:
        sizes = [
            TOKENS_PER_IMAGE if file.media_type.startswith("image/") else file.size // MIN_BYTES_PER_TOKEN
            for file in message.attachments
            if file.path in sent
        ]
        found[message.id] = sum(sizes)
    return found


def _shares(parts: Sequence[SentPart], usage: Usage) -> Iterator[SentPart]:
    """Yield the parts with their shares of the vendor's count, in proportion to the estimates. The shares add up to the
    count, and the first of them to what the vendor read from its cache."""
    estimated = list(accumulate((part.tokens for part in parts), initial=0))
    whole = max(1, estimated[-1])
    ends = [usage.input_tokens * size // whole for size in estimated]
    for part, (begin, end) in zip(parts, pairwise(ends), strict=True):
        cached = max(0, min(end, usage.cached_tokens) - begin)
        yield replace(part, tokens=end - begin, cached=cached)
