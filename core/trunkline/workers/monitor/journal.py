"""The journal of one conversation: replay and compare-and-set writing. Contains no turn logic."""

import logging
from collections.abc import Iterable, Sequence

import anyio
import msgspec

from trunkline.contracts.turns.journal_messages import (
    JournalEntry,
    TurnFinished,
    TurnParked,
    TurnRecord,
    TurnStarted,
)
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline_bus import Bus, DecodeError, Payload, Scope, SequenceConflict, StoredMessage, Topic

log = logging.getLogger(__name__)


class RawRecord(Payload, frozen=True, kw_only=True, tag="journal.record.v1"):
    """A ``TurnRecord`` with its entries as written, including those that only a later version can read."""

    epoch: int
    entries: tuple[msgspec.Raw, ...]


RAW_JOURNAL: Topic[RawRecord] = Topic(
    name="turn journal as written", subject=JOURNAL.subject, payload=RawRecord, stream=JOURNAL.stream
)


class Fenced(Exception):
    """Another monitor has written to the conversation's journal: this one is no longer the owner and must stop."""


class Journal:
    """Writes and reads the journal of a conversation.

    All turns of a conversation share one compare-and-set sequence, so an owner that was overtaken fails at its next
    write to any turn of the conversation.
    """

    def __init__(self, bus: Bus, owner: str, conversation: str) -> None:
        self._bus = bus
        self._owner = owner
        self._conversation = conversation
        self._filter = JOURNAL.subject.wildcard_filter(conversation=conversation)
        self._last: int | None = None
        self.unfinished: str | None = None
        """The turn that the journal ends with, if the turn has not ended; no other turn may begin. Set after a
        replay."""
        self.parked = False
        """True when that turn waits for a person."""

    @property
    def last_seq(self) -> int | None:
        """The sequence number of the last record, 0 for none; None when the number must be read first."""
        return self._last

    def assume_empty(self) -> None:
        """Assume without reading that the journal is empty. If that is wrong, the first write raises
        Fenced."""
        if self._last is None:
            self._last = 0

    def forget_last_seq(self) -> None:
        """Forget where the journal ends, because another monitor may write to the journal; the next replay reads the
        end."""
        self._last = None

    async def has_turn(self, turn: str) -> bool:
        """Report whether a turn has records. Does not read the end of the journal. Raises StreamError kinds."""
        return await self._bus.last_seq(JOURNAL, conversation=self._conversation, turn=turn) > 0

    async def replay(self, turn: str) -> list[TurnRecord]:
        """Return the records of a turn, oldest first; also read where the conversation's journal ends.

        Raises DecodeError when a later version wrote a record that this one cannot read, and Fenced when
        another owner wrote after the known end: the known state of other turns is out of date too.
        """
        # The end of the conversation's journal is read before the turn. A write to the turn in between then appears as
        # a record behind the end, and a write to another turn makes the next write here fail. In the opposite order,
        # this monitor would accept an end without having read all records before it, and no write would be fenced
        # (ADR 0003).
        while True:
            known = self._last is not None
            if not known:
                await self._load_last_seq()
            if not self._last:
                return []
            stored = await self._records(turn)
            if not stored or stored[-1].seq <= self._last:
                return [one.data for one in stored]
            if known:
                raise Fenced(f"turn {turn} has a newer owner")
            self.forget_last_seq()

    async def is_fenced(self) -> bool:
        """Report whether another owner has written after the known end. Raises StreamError kinds."""
        known = self._last
        return (
            known is not None and await self._bus.last_seq(JOURNAL, conversation=self._conversation) != known
        )

    async def _load_last_seq(self) -> None:
        try:
            tail = await self._bus.last(RAW_JOURNAL, conversation=self._conversation)
        except DecodeError as error:
            log.warning("the last record of the journal of %s cannot be read: %s", self._conversation, error)
            self._last = await self._bus.last_seq(JOURNAL, conversation=self._conversation)
            return self.skip_unfinished_turn()
        self._last = 0 if tail is None else tail.seq
        if tail is None:
            return self.skip_unfinished_turn()
        self._note_last_entry(tail.keys["turn"], _readable(tail.data.entries[-1:]))

    def _note_last_entry(self, turn: str, entries: Sequence[JournalEntry]) -> None:
        last = entries[-1] if entries else None
        self.unfinished = None if isinstance(last, TurnFinished) else turn
        self.parked = isinstance(last, TurnParked)

    def skip_unfinished_turn(self) -> None:
        """Let other turns begin although the journal ends with an unfinished turn that cannot be ended."""
        self.unfinished, self.parked = None, False

    async def request_of(self, turn: str) -> TurnRequested | None:
        """Return the message that a turn answers; None when the turn's journal does not contain the message. Raises
        StreamError kinds."""
        entries, _ = await self.salvage(turn)
        return next((entry.request for entry in entries if isinstance(entry, TurnStarted)), None)

    async def salvage(self, turn: str) -> tuple[list[JournalEntry], int]:
        """Return the readable entries of a turn's journal and the epoch of its last owner, 0 for none. Skips
        unreadable entries."""
        if self._last is None:
            await self._load_last_seq()
        entries: list[JournalEntry] = []
        epoch = 0
        try:
            async for stored in self._bus.history(RAW_JOURNAL, conversation=self._conversation, turn=turn):
                epoch = stored.data.epoch
                entries.extend(_readable(stored.data.entries))
        except DecodeError as error:
            log.warning("the journal of turn %s cannot be read to its end: %s", turn, error)
        return entries, epoch

    async def _records(self, turn: str) -> list[StoredMessage[TurnRecord]]:
        """Read up to the leader's newest record, because a replica that is behind may answer a direct get.

        The leader's newest record is read before each attempt: after a restart, a server that could not write to its
        disk may lack records that it reported earlier.
        """
        while True:
            newest = await self._bus.last(JOURNAL, conversation=self._conversation, turn=turn)
            if newest is None:
                return []
            stored = [s async for s in self._bus.history(JOURNAL, conversation=self._conversation, turn=turn)]
            if stored and stored[-1].seq >= newest.seq:
                return stored
            await anyio.sleep(0.05)

    async def write(self, request: TurnRequested, epoch: int, entries: tuple[JournalEntry, ...]) -> None:
        """Write entries of the request's turn in one record.

        Raises Fenced when another owner has written since, and StreamError kinds.
        """
        # One record holds all entries that belong together: after a crash all of them are stored or none (ADR 0005).
        # The expected sequence covers all turns of the conversation, so an owner that was overtaken in any of them
        # fails here (ADR 0003). The new end is noted after the server has stored the record.
        turn = request.turn
        record = TurnRecord(turn=turn, epoch=epoch, owner=self._owner, entries=entries)
        try:
            ack = await self._bus.append(
                JOURNAL,
                record,
                scope=Scope(block=request.block, conversation=self._conversation, turn=turn),
                expect=self._last,
                expect_filter=self._filter,
                timeout=60.0,
                conversation=self._conversation,
                turn=turn,
            )
        except SequenceConflict as error:
            raise Fenced(f"turn {turn} has a newer owner") from error
        self._last = ack.seq
        self._note_last_entry(turn, entries)


def _readable(entries: Iterable[msgspec.Raw]) -> list[JournalEntry]:
    """Return the entries that this version can read."""
    decoded: list[JournalEntry] = []
    for raw in entries:
        try:
            decoded.append(msgspec.json.decode(raw, type=JournalEntry))
        except msgspec.ValidationError:
            continue  # a later version's
    return decoded
