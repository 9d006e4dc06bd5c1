"""Erases conversations from the server's streams by overwriting their bytes, and reports other messages with the same
text.

A message that was handled, replaced or has expired can no longer be erased. Its bytes stay in the server's file until
the other messages in that file are deleted too. The report says so.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta

import anyio
import msgspec
from anyio import to_thread

from trunkline.contracts.agents.subjects import AGENT_BUCKET, TASK_BUCKET
from trunkline.contracts.gateway.subjects import TRANSCRIPT_BUCKET
from trunkline.contracts.memory.purge import Erased, RemainingCopy
from trunkline.contracts.memory.purger import Purge
from trunkline.contracts.memory.text_match import TextMatcher
from trunkline.contracts.retention import Retention
from trunkline.contracts.streams import (
    APPROVAL_STREAM,
    AUDIT_STREAM,
    DEAD_STREAM,
    EFFECT_STREAM,
    FACT_STREAM,
    FEED_STREAM,
    INBOX_STREAM,
    JOURNAL_STREAM,
    SPAN_STREAM,
    STREAMS,
)
from trunkline.contracts.tools.subjects import RESULT_STORE
from trunkline.contracts.topology import topology
from trunkline.contracts.turns.journal_messages import (
    JournalEntry,
    ToolPlanned,
    TurnFinished,
    TurnRecord,
    TurnStarted,
)
from trunkline.contracts.workers.subjects import CLAIM_STORE
from trunkline_bus import Bus, DecodeError, ObjectInfo, Refusal, StoredRecord
from trunkline_bus.connection.claim_check import CLAIM_HEADER

RecordFilter = Callable[[StoredRecord, bytes], bool]

ORPHAN_AGE = 30.0
"""Seconds after which a body that no message claims is not part of a message in flight. This is longer than any reply
is waited for.
"""

ORPHAN_ROUNDS = 4
"""The most searches for such bodies in one purge."""

FRAGMENT_PAUSE = 0.1
"""Seconds between two looks at a body that is being stored."""


class _Attribution(msgspec.Struct):
    """The fields of a message that name its conversation and turn."""

    conversation: str = ""
    turn: str = ""


class _Message(msgspec.Struct):
    data: _Attribution


class _JournalBody(msgspec.Struct):
    data: TurnRecord


SCANNED_STREAMS = (
    INBOX_STREAM, JOURNAL_STREAM, FEED_STREAM, EFFECT_STREAM, FACT_STREAM, APPROVAL_STREAM, SPAN_STREAM, AUDIT_STREAM,
    DEAD_STREAM,
)  # fmt: skip


def id_matcher(ids: Iterable[str]) -> Callable[[bytes], bool]:
    """Return a function that reports whether a body names one of these conversations and turns.

    An id that Trunkline made matches wherever it is a whole word. Another id, which an import may have made from any
    word, matches only as the value of a field for a conversation or a turn.
    """
    ours: list[bytes] = []
    others: list[bytes] = []
    for id in ids:
        (ours if id.startswith(("conv_", "turn_")) else others).append(re.escape(id.encode()))
    patterns = []
    if ours:
        patterns.append(re.compile(rb"(?<![\w-])(?:" + b"|".join(ours) + rb")(?![\w-])"))
    if others:
        key = rb'"[\w.]*(?:conversation|turn)[\w.]*"\s*:\s*"(?:'
        patterns.append(re.compile(key + b"|".join(others) + rb')"'))
    return lambda body: any(pattern.search(body) for pattern in patterns)


class StreamEraser:
    """Erases conversations from the streams and buckets of one server."""

    def __init__(self, bus: Bus, retention: Retention) -> None:
        self._bus = bus
        whole = topology(retention=retention)
        self._ages = {stream.name: stream.max_age for stream in whole.streams}
        object_ages = {store.name: store.ttl for store in whole.objects}
        self._result_age, self._claim_age = object_ages[RESULT_STORE.name], object_ages[CLAIM_STORE.name]

    # Preparing -----------------------------------------------------------------------------------------------

    async def refuse_running(self, purge: Purge) -> None:
        """Raise Refusal ``turn_running`` if a turn of the conversations is not finished. Raises BusError."""
        for conversation in sorted(purge.conversations):
            async for _ in self._bus.records(INBOX_STREAM, f"trunkline.turn.part.*.{conversation}"):
                raise _running_refusal(conversation, "has a message that is not answered yet")
            ended: dict[str, bool] = {}
            async for turn, entries in self._turns_of(conversation):
                over = any(isinstance(entry, TurnFinished) for entry in entries)
                ended[turn] = ended.get(turn, False) or over
            for turn, over in ended.items():
                if not over:
                    raise _running_refusal(conversation, f"has a turn that is not over: {turn}")

    async def turns(self, purge: Purge) -> frozenset[str]:
        """Return the turns of the conversations that the journal has. Raises BusError."""
        found = set()
        for conversation in purge.conversations:
            async for record in self._bus.records(JOURNAL_STREAM, f"trunkline.journal.turn.{conversation}.*"):
                found.add(record.subject.rpartition(".")[2])
        return frozenset(found)

    # Erasing -------------------------------------------------------------------------------------------------

    async def erase(self, purge: Purge) -> list[Erased]:
        """Erase all data of the conversations. Raises BusError.

        Data that leads to other data is erased last, so that the call can be repeated after a crash.
        """
        if not purge.conversations:
            return []
        calls, traces = await self._related_keys(purge)

        def said(_: StoredRecord, body: bytes) -> bool:
            return _attribution(body).conversation in purge.conversations

        names = id_matcher(purge.conversations)
        return _counted(
            {
                EFFECT_STREAM: await self._erase(EFFECT_STREAM, lambda record, _: _last(record) in calls),
                SPAN_STREAM: await self._erase(
                    SPAN_STREAM, lambda record, _: record.subject.split(".")[3] in traces
                ),
                APPROVAL_STREAM: await self._erase(APPROVAL_STREAM, said),
                FACT_STREAM: await self._erase(FACT_STREAM, said),
                AUDIT_STREAM: await self._erase(AUDIT_STREAM, said),
                DEAD_STREAM: await self._erase(DEAD_STREAM, lambda _, body: names(body)),
                **{
                    bucket.stream_name: await self._erase(bucket.stream_name, lambda _, body: names(body))
                    for bucket in (TRANSCRIPT_BUCKET, AGENT_BUCKET, TASK_BUCKET)
                },
                RESULT_STORE.stream_name: await self._erase_results(purge),
                FEED_STREAM: await self._erase_named(FEED_STREAM, "trunkline.feed.turn.{}.*", purge),
                JOURNAL_STREAM: await self._erase_named(JOURNAL_STREAM, "trunkline.journal.turn.{}.*", purge),
            }
        )

    async def _related_keys(self, purge: Purge) -> tuple[set[str], set[str]]:
        """Return the ledger keys of the conversations' calls, and the ids of their traces."""
        calls: set[str] = set()
        traces: set[str] = set()
        for conversation in purge.conversations:
            async for _, entries in self._turns_of(conversation):
                for entry in entries:
                    if isinstance(entry, ToolPlanned):
                        calls.add(entry.key)
                    elif isinstance(entry, TurnStarted) and entry.request.traceparent:
                        traces.add(entry.request.traceparent.split("-")[1])
        async for record, body in self._bodies(EFFECT_STREAM):
            if _attribution(body).turn in purge.turns:
                calls.add(_last(record))
        names = id_matcher((*purge.conversations, *purge.turns))
        async for record, body in self._bodies(SPAN_STREAM):
            if names(body):
                traces.add(record.subject.split(".")[3])
        return calls, traces

    async def _erase(self, stream: str, filters: RecordFilter, filter: str = ">") -> int:
        count = 0
        async for record, body in self._bodies(stream, filter):
            if filters(record, body):
                await self._bus.erase(stream, record)
                count += 1
        return count

    async def _erase_named(self, stream: str, filter: str, purge: Purge) -> int:
        counts = [
            await self._erase(stream, lambda _, __: True, filter.format(name)) for name in purge.conversations
        ]
        return sum(counts)

    async def _erase_results(self, purge: Purge) -> int:
        objects = self._bus.objects(RESULT_STORE)
        gone = [
            info
            for info in await objects.infos()
            if info.metadata.get("conversation", "") in purge.conversations
        ]
        for info in gone:
            await objects.erase(info.name)
        return len(gone)

    async def erase_orphans(self, purge: Purge) -> list[Erased]:
        """Erase bodies whose message was deleted and that hold the text, and all bodies that were stored in part only.
        The body of a handled message stays until it expires. Raises BusError.

        A body is stored before its message, and some messages are in no stream. So a body without a message counts as
        left behind only if it is older than any message in flight. A request that is in flight when the search begins
        may store its body during the wait, so the search is repeated until it finds no body, at most ``ORPHAN_ROUNDS``
        times. ``remaining`` reports the bodies that are left.
        """
        objects, erased = self._bus.objects(CLAIM_STORE), 0
        for _ in range(ORPHAN_ROUNDS):
            erased += await self._erase_fragments()
            found = await self._orphans(purge)
            if not found:
                break
            await anyio.sleep(max(0.0, ORPHAN_AGE - min(map(_age, found))))
            named = await self._named()
            erased += sum([await objects.erase(info.name) for info in found if info.name not in named])
        return _counted({CLAIM_STORE.stream_name: erased})

    async def _erase_fragments(self) -> int:
        """Erase bodies that were stored in part, because their sender was killed or cancelled, and return their number.

        Nothing reads them, and a part of a line is not recognized as the text, so their content does not matter. A body
        that is being stored is waited for: it becomes whole, or gets no further piece for ``ORPHAN_AGE``.
        """
        objects = self._bus.objects(CLAIM_STORE)
        began = {one.nuid for one in await objects.fragments()}
        count = 0
        while left := [one for one in await objects.fragments() if one.nuid in began]:
            old = [one for one in left if _age(one) >= ORPHAN_AGE]
            for one in old:
                await objects.erase_fragment(one)
            count += len(old)
            if len(old) < len(left):
                await anyio.sleep(FRAGMENT_PAUSE)
        return count

    async def _orphans(self, purge: Purge) -> list[ObjectInfo]:
        """Return the bodies that no message of a stream names and that hold the text or name the conversations."""
        wording, names = TextMatcher(purge.lines), id_matcher(purge.conversations)
        objects, found = self._bus.objects(CLAIM_STORE), []
        named = await self._named()
        for info in await objects.infos():
            data = None if info.name in named else await objects.get(info.name)
            if data is not None and (names(data) or await to_thread.run_sync(wording.count_lines, data) > 0):
                found.append(info)
        return found

    async def _named(self) -> set[str | None]:
        """Return the bodies that the messages of streams claim."""
        return {
            record.headers.get(CLAIM_HEADER)
            for stream in STREAMS
            async for record in self._bus.records(stream.name)
        }

    # Reporting -----------------------------------------------------------------------------------------------

    async def remaining(self, purge: Purge) -> list[RemainingCopy]:
        """Return the messages that still contain lines of the text: their conversations, and when they expire. Also
        return the bodies that ``erase_orphans`` left. Raises BusError.
        """
        copies: list[RemainingCopy] = []
        wording = TextMatcher(purge.lines)
        known = await self._call_conversations() if purge.lines else {}
        for stream in SCANNED_STREAMS if purge.lines else ():
            copies += [
                RemainingCopy(where=f"stream {stream}", what=HOLDING, until=until, conversation=conversation)
                for conversation, until in (await self._conversations_holding(stream, wording, known)).items()
            ]
        copies += [one async for one in self._results_holding(wording)] if purge.lines else []
        if orphans := await self._orphans(purge):
            until = _later(max(map(_stored_at, orphans)), self._claim_age)
            copies.append(
                RemainingCopy(where=f"stream {CLAIM_STORE.stream_name}", what=ORPHANED, until=until)
            )
        if any(
            [
                await self._has_records(stream)
                for stream in (INBOX_STREAM, APPROVAL_STREAM, FEED_STREAM, DEAD_STREAM)
            ]
        ):
            copies.append(RemainingCopy(where="files of the NATS server", what=UNREACHED))
        return copies

    async def _conversations_holding(
        self, stream: str, wording: TextMatcher, known: Mapping[str, str]
    ) -> dict[str, datetime | None]:
        """Return the conversations whose messages contain the text, each with the time when its last message expires.
        The key "" is for messages without a conversation.
        """
        found: dict[str, datetime | None] = {}
        age = self._ages[stream]
        async for record, body in self._bodies(stream):
            if wording.count_lines(body):
                until = _later(record.time, age)
                found[_conversation_of_record(record, body, known)] = until
        return found

    async def _call_conversations(self) -> dict[str, str]:
        """Return the conversation of each call in the ledger, by the call's key."""
        return {
            entry.key: conversation
            async for conversation, _, entries in self._journal_records("*")
            for entry in entries
            if isinstance(entry, ToolPlanned)
        }

    async def _results_holding(self, wording: TextMatcher) -> AsyncIterator[RemainingCopy]:
        objects = self._bus.objects(RESULT_STORE)
        for info in await objects.infos():
            data = await objects.get(info.name)
            if data is not None and wording.count_lines(data):
                yield RemainingCopy(
                    where=f"stored result {info.metadata.get('id', info.name)}",
                    what="It holds lines of it.",
                    until=_later(_stored_at(info), self._result_age),
                    conversation=info.metadata.get("conversation", ""),
                )

    async def _turns_of(self, conversation: str) -> AsyncIterator[tuple[str, tuple[JournalEntry, ...]]]:
        """Yield the turns of a conversation in the journal, with their entries, record by record."""
        async for _, turn, entries in self._journal_records(conversation):
            yield turn, entries

    async def _journal_records(
        self, conversation: str
    ) -> AsyncIterator[tuple[str, str, tuple[JournalEntry, ...]]]:
        """Yield the conversation, turn and entries of each record. A record that cannot be decoded has no entries.
        ``*`` is any conversation.
        """
        async for record, body in self._bodies(JOURNAL_STREAM, f"trunkline.journal.turn.{conversation}.*"):
            try:
                entries = msgspec.json.decode(body, type=_JournalBody).data.entries
            except (msgspec.MsgspecError, UnicodeDecodeError):
                entries = ()
            yield record.subject.split(".")[-2], _last(record), entries

    async def _has_records(self, stream: str) -> bool:
        async for _ in self._bus.records(stream):
            return True
        return False

    async def _bodies(self, stream: str, filter: str = ">") -> AsyncIterator[tuple[StoredRecord, bytes]]:
        """Yield the messages with their bodies. If a claimed body was deleted, yield the record's own data."""
        async for record in self._bus.records(stream, filter):
            try:
                yield record, await self._bus.body(record)
            except DecodeError:
                yield record, record.data


HOLDING = "Messages hold lines of it."

ORPHANED = "Messages that arrived during the purge left text of it. Purge it again."

UNREACHED = (
    "Messages that were handled, replaced or have expired cannot be read any more, and cannot be overwritten; their "
    "bytes stay in the files under bus/ until all messages in the same file are gone."
)


def _running_refusal(conversation: str, why: str) -> Refusal:
    return Refusal(
        "turn_running",
        f"The conversation {conversation} {why}. Nothing was purged. Cancel the turn, or decide what it waits for, and "
        "purge again.",
    )


def _counted(counts: Mapping[str, int]) -> list[Erased]:
    return [Erased(where=where, count=count) for where, count in counts.items() if count]


def _stored_at(info: ObjectInfo) -> datetime:
    """Return the time when an object was stored, but not later than now.

    The client that stored the object wrote this time. If it cannot be read, the object counts as new.
    """
    now = datetime.now(UTC)
    try:
        written = datetime.fromisoformat(info.mtime)
    except ValueError:
        return now
    return min(now, written if written.tzinfo is not None else written.replace(tzinfo=UTC))


def _age(info: ObjectInfo) -> float:
    """Return the seconds since an object was stored."""
    return (datetime.now(UTC) - _stored_at(info)).total_seconds()


def _later(at: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else at + timedelta(seconds=seconds)


def _last(record: StoredRecord) -> str:
    return record.subject.rpartition(".")[2]


def _attribution(body: bytes) -> _Attribution:
    """Return the conversation and turn of a message; empty if the message names none."""
    try:
        return msgspec.json.decode(body, type=_Message).data
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _Attribution()


def _conversation_of_record(record: StoredRecord, body: bytes, known: Mapping[str, str]) -> str:
    """Return the conversation of a message, or of its call according to ``known``; "" if there is none."""
    parts = record.subject.split(".")
    if parts[1:3] == ["turn", "part"]:
        return parts[-1]
    if parts[1:3] in (["journal", "turn"], ["feed", "turn"]):
        return parts[-2]
    return _attribution(body).conversation or known.get(_last(record), "")
