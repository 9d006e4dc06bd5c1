"""Replays a recorded turn without model, tools or writes, and checks that the state machine makes the same
decisions. Pure.

Each record of the journal is the machine's response to one set of inputs. The inputs are given to a new
machine, whose response must equal the record byte for byte. The feed is reconstructed from the journal, as
for a late reader, and must equal the messages that the machine stores in the end.
"""

from collections.abc import Iterable, Sequence

import msgspec

from trunkline.contracts.turns.feed_events import feed_items_from_journal
from trunkline.contracts.turns.feed_merge import FeedMerge
from trunkline.contracts.turns.feed_messages import (
    COMPACTION_STATUS,
    NOT_STORED,
    FeedEvent,
    FeedItem,
    MessageSteered,
    StatusShown,
    TextDelta,
    TextReset,
    ToolEnded,
    TurnEnded,
)
from trunkline.contracts.turns.journal_messages import (
    JournalEntry,
    ModelCallPlanned,
    ToolPlanned,
    TurnFinished,
    TurnParked,
    TurnRecord,
)
from trunkline.errors import ErrorCode, TrunklineError
from trunkline.workers.monitor.journal import RawRecord
from trunkline.workers.monitor.turn import Command, StoreTurn, Turn, TurnProtocolError
from trunkline.workers.monitor.turn_messages import last_answer_id, new_messages

PLANS = (ModelCallPlanned, ToolPlanned, TurnParked)
"""The entries that the machine adds to its inputs."""

GIVEN_UP = (ErrorCode.INTERNAL, ErrorCode.STORAGE_FAILURE)
"""The ends that the machine does not decide: the turn could not be run, or its messages could not be
stored."""


class ReplayedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One replayed record.

    ``step`` is the number of the model call that it planned, or of the last one before it. ``commands`` are
    the names of the commands that followed; ``same`` is whether the machine produced the same bytes,
    ``problem`` the difference.
    """

    epoch: int
    step: int | None
    entries: tuple[str, ...]
    commands: tuple[str, ...]
    same: bool
    problem: str = ""


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of replaying a turn.

    ``entries_same``: every record was reproduced byte for byte. ``end_same``: the last entry is the machine's
    end. ``messages_same``: the feed of the journal equals the stored messages. ``feed_same``: the stored feed
    equals the feed of the journal. Each is None when there is nothing to compare: the turn has not ended or
    was given up, or the feed is no longer stored.
    """

    turn: str
    records: tuple[ReplayedRecord, ...]
    phase: str
    entries_same: bool
    end_same: bool | None
    messages_same: bool | None
    feed_same: bool | None
    text: str

    @property
    def same(self) -> bool:
        """Report whether there is no difference."""
        return self.entries_same and False not in (self.end_same, self.messages_same, self.feed_same)


def replay(turn: str, raw: Sequence[RawRecord], feed: Iterable[FeedItem] = ()) -> ReplayReport:
    """Replay a turn from its journal as written, and from its feed as far as it is stored.

    Raises TrunklineError when the journal has entries that this version cannot read.
    """
    decoded = [_decoded(turn, record) for record in raw]
    machine = Turn()
    ends: list[TurnFinished] = []
    steps = _steps(decoded)
    records = tuple(
        _replay_record(machine, one, record, step, ends)
        for one, record, step in zip(raw, decoded, steps, strict=True)
    )
    finished = machine.finished
    given_up = finished is not None and finished.code in GIVEN_UP
    journal_feed = _merge_feed(feed_items_from_journal(decoded))
    stored_feed = _merge_feed(feed)
    complete = bool(stored_feed) and isinstance(stored_feed[-1], TurnEnded)
    return ReplayReport(
        turn=turn,
        records=records,
        phase=machine.phase.value,
        entries_same=all(record.same for record in records),
        end_same=None if finished is None or given_up else finished in ends,
        messages_same=None if given_up else _durable_content(journal_feed) == _stored(machine),
        feed_same=_visible_content(journal_feed) == _visible_content(stored_feed)
        if complete and not given_up
        else None,
        text="".join(_texts(journal_feed).values()),
    )


def _decoded(turn: str, record: RawRecord) -> TurnRecord:
    try:
        entries = tuple(msgspec.json.decode(one, type=JournalEntry) for one in record.entries)
    except msgspec.ValidationError as error:
        raise TrunklineError(
            f"Turn {turn} cannot be replayed: a later version of Trunkline wrote its journal ({error}).",
            hint="Update Trunkline.",
        ) from error
    return TurnRecord(turn=turn, epoch=record.epoch, owner="", entries=entries)


def _steps(records: Iterable[TurnRecord]) -> list[int | None]:
    """Return the step of each record; ``trunkline fork`` takes these numbers."""
    step: int | None = None
    steps = []
    for record in records:
        step = next((e.step for e in reversed(record.entries) if isinstance(e, ModelCallPlanned)), step)
        steps.append(step)
    return steps


def _replay_record(
    machine: Turn, raw: RawRecord, record: TurnRecord, step: int | None, ends: list[TurnFinished]
) -> ReplayedRecord:
    """Give the record's inputs to the machine; add the end that it reaches to ``ends``."""
    problem, commands = "", tuple[Command, ...]()
    entries: tuple[JournalEntry, ...] = ()
    try:
        if _is_given_up(record):
            entries = _apply_record(machine, record)
        else:
            inputs = [entry for entry in record.entries if not isinstance(entry, PLANS)]
            entries, commands = machine.advance(*inputs)
    except TurnProtocolError as error:
        problem = str(error)
    ends += [_end(machine, command) for command in commands if isinstance(command, StoreTurn)]
    same = [_bytes(entry) for entry in entries] == [bytes(entry) for entry in raw.entries]
    if not same and not problem:
        problem = f"the replay produced {', '.join(_name(entry) for entry in entries) or 'no entries'}"
    return ReplayedRecord(
        epoch=record.epoch,
        step=step,
        entries=tuple(_name(entry) for entry in record.entries),
        commands=tuple(type(command).__name__ for command in commands),
        same=same,
        problem=problem,
    )


def _is_given_up(record: TurnRecord) -> bool:
    last = record.entries[-1] if record.entries else None
    return isinstance(last, TurnFinished) and last.code is ErrorCode.INTERNAL


def _apply_record(machine: Turn, record: TurnRecord) -> tuple[JournalEntry, ...]:
    """Apply the last record of a turn that was given up. It was not planned by the machine."""
    for entry in record.entries:
        machine.apply(entry)
    return record.entries


def _end(machine: Turn, store: StoreTurn) -> TurnFinished:
    answer = last_answer_id(new_messages(machine, closing=True))
    return store.end(machine, answer)


def _merge_feed(feed: Iterable[FeedItem]) -> list[FeedEvent]:
    """Return the events of a feed as a reader gets them."""
    merge = FeedMerge()
    merge.offer_stored(feed)
    return [event for _, event in merge.take()]


DurableContent = tuple[str, list[tuple[str | None, str]], list[str]]
"""The durable content of a turn: the answer's text, the result of each call, and the ids of steered
messages."""


def _durable_content(journal_feed: Iterable[FeedEvent]) -> DurableContent:
    events = list(journal_feed)
    results: list[tuple[str | None, str]] = [
        (event.call_id, event.output) for event in events if isinstance(event, ToolEnded)
    ]
    steered = [event.message.id for event in events if isinstance(event, MessageSteered)]
    return "".join(_texts(events).values()), sorted(results), sorted(steered)


def _stored(machine: Turn) -> DurableContent:
    journal_feed = len(machine.request.preceding or ()) + 1 if machine.request is not None else 0
    messages = new_messages(machine)[journal_feed:] if machine.request is not None else ()
    text = "".join(message.content for message in messages if message.role == "assistant")
    results = [(message.tool_call_id, message.content) for message in messages if message.role == "tool"]
    return text, sorted(results), sorted(message.id for message in messages if message.role == "user")


def _texts(events: Iterable[FeedEvent]) -> dict[int, str]:
    texts: dict[int, str] = {}
    for event in events:
        if isinstance(event, TextDelta):
            texts[event.step] = texts.get(event.step, "")[: event.offset] + event.text
        elif isinstance(event, TextReset):
            texts.pop(event.step, None)
    return dict(sorted(texts.items()))


def _visible_content(events: Iterable[FeedEvent]) -> tuple[dict[int, str], list[bytes]]:
    """Return what a client finally shows: each step's text, and all other events. Parallel calls end in any
    order."""
    shown = list(events)
    others = [
        _bytes(event)
        for event in shown
        if _name(event) not in ("text.delta", "text.reset", "reasoning.delta") and not _is_passing(event)
    ]
    return _texts(shown), sorted(others)


def _is_passing(event: FeedEvent) -> bool:
    """Report whether the event describes the present, so that the journal does not have it."""
    return event == NOT_STORED or (isinstance(event, StatusShown) and event.name == COMPACTION_STATUS)


def _name(entry: object) -> str:
    return str(type(entry).__struct_config__.tag)  # type: ignore[attr-defined]


def _bytes(value: object) -> bytes:
    return msgspec.json.encode(value)
