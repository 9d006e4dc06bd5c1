"""Watch a turn: merge live items and the stored feed into one order of events, across outages, restarts and
takeovers.

``feed_merge`` decides the order. This module decides when to read which source. The reader takes live items first,
then reads the stored feed. It reads the feed again if items are missing or none arrive, and reads the journal if the
turn ended and the feed does not say so.
"""

import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator

import anyio

from trunkline.contracts.turns.feed_events import JOURNAL_EPOCH, feed_items_from_journal, is_finished
from trunkline.contracts.turns.feed_merge import Chain, FeedMerge, parse_position
from trunkline.contracts.turns.feed_messages import FeedEvent, FeedItem
from trunkline.contracts.turns.lanes import Lane
from trunkline.contracts.turns.messages import InboxItem, TurnSteered
from trunkline.contracts.turns.poll_limiter import PollLimiter
from trunkline.contracts.turns.subjects import FEED, INBOX, JOURNAL
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline_bus import Bus, BusError, DecodeError, ReceivedMessage, RemoteFault
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

BUFFER = 1024
"""The largest number of live items that wait for a slow reader. Older items are read from the stream again."""

SILENT_PAUSE, FIRST_PAUSE, LONGEST_PAUSE = 0.25, 0.05, 2.0
"""Seconds until the first poll of the stream if no item arrives, as while a model thinks; until the first poll if an
item is known to be missing; and the longest pause. The pause doubles after each poll.
"""


CAUGHT_UP_WITHIN = 0.5
"""Seconds within which a newly elected leader of a stream knows all messages accepted before."""

STORED_WITHIN = 5.0
"""Seconds after which an item counts as lost if a reader received it and the stream does not hold it."""


class TurnNotFound(RemoteFault, LookupError):
    """Raised if the feed, the journal and the inbox do not know the turn."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.NOT_FOUND, FIXED_SENTENCES[ErrorCode.NOT_FOUND])


class FeedReader:
    """A ``TurnStream``: iterate over it once. After ``idle_timeout`` seconds without an event the reader reads the
    journal. ``fresh`` means that the turn was accepted just now: nothing is read before an item turns out to be
    missing. ``poll_limiter`` is the limiter shared with other readers, so that each polls less often if there are many.

    Raises ``ValueError`` if ``after`` is not a position, and ``TurnNotFound`` while iterating. If the bus is
    unavailable the reader waits for it.
    """

    def __init__(
        self,
        bus: Bus,
        conversation: str,
        turn: str,
        *,
        after: str = "",
        idle_timeout: float = 2.0,
        fresh: bool = False,
        poll_limiter: PollLimiter | None = None,
    ) -> None:
        self._chain = parse_position(after).chain
        self.position = after
        self._bus = bus
        self._conversation = conversation
        self._turn = turn
        self._idle_timeout = idle_timeout
        self._poll_limiter = poll_limiter or PollLimiter()
        self._fresh = fresh and not after
        self._merge = FeedMerge()
        self._live = _LiveItems()
        self._last_seq = 0
        self._readable = True
        """Whether the last read of the stream returned everything stored."""
        self._silent_since = 0.0
        self._missing = False
        self._backoff = Backoff(SILENT_PAUSE, LONGEST_PAUSE)
        self._due = 0.0

    @property
    def text(self) -> str:
        """All text of the answer that is valid after the last event, including the text before ``after``."""
        return self._merge.text

    @property
    def lane(self) -> Lane:
        """The turn's lane, as the last event has it."""
        return self._merge.lane

    def __aiter__(self) -> AsyncIterator[FeedEvent]:
        return self.events()

    async def events(self) -> AsyncGenerator[FeedEvent, None]:
        """Yield the events. Close the generator to unsubscribe at once if you stop early."""
        # Subscribe before reading the stored feed, so that no item falls between the two. An item that arrives both
        # ways is taken once, by epoch and index (ADR 0004).
        subscription = await self._bus.subscribe(
            FEED, self._live.put, limit=1, confirm=False, conversation=self._conversation, turn=self._turn
        )
        try:
            if not self._fresh:
                async with self._poll_limiter.catching_up:
                    await self._load_stored()
            self._note_progress()
            with self._poll_limiter.counted_reader():
                while True:
                    for position, event in self._merge.take():
                        self.position = position
                        self._note_progress()
                        yield event
                    if self._merge.ended:
                        return
                    await self._wait_for_items()
        finally:
            with anyio.CancelScope(shield=True):
                await subscription.aclose()

    async def _load_stored(self) -> None:
        """Read the stored feed; do not deliver the items up to the position to resume from."""
        # The feed is stored asynchronously, so a crash of the server may have lost its end, and its age or size limit
        # its beginning. While the monitor lives it sends again what the server lost. If the monitor died too, the
        # next owner's epoch repeats everything; for a turn that has ended, the journal does (ADR 0004, 0024). "Not
        # found" is raised only if the inbox and the journal do not know the turn either, both asked twice.
        stored = await self._stored_up_to_position()
        if not stored and not self._chain and not await self._is_surely_known():
            raise TurnNotFound
        if not stored or (self._chain and self._chain[-1][0] == JOURNAL_EPOCH):
            stored = [*stored, *await self._items_from_journal()]
        self._merge.resume(self.position, stored)
        self._merge.offer_stored(stored)

    async def _stored_up_to_position(self) -> list[FeedItem]:
        """Return the stored feed once it can be read.

        An item that a reader received live may take a moment to be stored, or to be found while servers elect the
        stream's leader. An item of an epoch that a later epoch has superseded is not waited for.
        """
        deadline = anyio.current_time() + STORED_WITHIN
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            stored = await self._read_stored()
            settled = _covers_position(stored, self._chain) or _has_later_epoch(stored, self._chain)
            if self._readable and (settled or anyio.current_time() >= deadline):
                return stored
            await backoff.sleep()

    def _silence(self) -> float:
        return anyio.current_time() - self._silent_since

    def _note_progress(self) -> None:
        self._silent_since = anyio.current_time()
        self._missing = False
        self._due = self._silent_since + self._poll_limiter.interval(self._backoff.delay)

    def _note_missing(self) -> None:
        """Schedule a poll at once if an item has just turned out to be missing."""
        if self._merge.has_gap and not self._merge.is_ready and not self._missing:
            self._missing = True
            self._due, self._backoff = anyio.current_time(), Backoff(FIRST_PAUSE, LONGEST_PAUSE)

    async def _wait_for_items(self) -> None:
        """Wait for live items until the next poll of the stream is due, which is at once if an item is missing."""
        self._note_missing()
        if await self._live.wait(max(0.0, self._due - anyio.current_time())):
            for item in self._live.drain():
                self._merge.offer(item)
            self._note_missing()
        if not self._merge.is_ready and anyio.current_time() >= self._due:
            await self._poll_stream()
            self._due = anyio.current_time() + self._poll_limiter.interval(self._backoff.advance())

    async def _poll_stream(self) -> None:
        """Read the new items of the stream, or all items if some are missing; after ``idle_timeout`` seconds without
        an item, read the journal.
        """
        if not self._merge.has_gap and not self._live.lost:
            for item in await self._read_stored(after=self._last_seq):
                self._merge.offer(item)
        else:
            self._live.lost = False
            self._merge.offer_stored(await self._read_stored())
        if self._silence() >= self._idle_timeout and not self._merge.is_ready:
            await self._fall_back_to_journal()

    async def _fall_back_to_journal(self) -> None:
        """Use the journal's events if the journal says that the turn ended and the feed does not."""
        # The feed is read once more after the journal. If the missing items were stored in between, the reader
        # continues where it is. The journal's items form an epoch above all others, so they start anew and end all
        # waiting for the feed.
        items = await self._items_from_journal()
        if items:
            self._merge.offer_stored(await self._read_stored())
        if not self._merge.is_ready:
            for item in items:
                self._merge.offer(item)

    async def _read_stored(self, after: int = 0) -> list[FeedItem]:
        items: list[FeedItem] = []
        self._readable = True
        try:
            async for stored in self._bus.history(
                FEED, after=after, conversation=self._conversation, turn=self._turn
            ):
                items.append(stored.data)
                self._last_seq = stored.seq
        except DecodeError as error:
            log.warning("the feed of %s contains an item that cannot be read: %s", self._turn, error)
        except BusError as error:
            self._readable = False
            log.debug("the feed of %s cannot be read now: %s", self._turn, error)
        return items

    async def _items_from_journal(self) -> list[FeedItem]:
        """Return the items derived from the journal of a finished turn; none while the turn runs or the journal
        cannot be read.
        """
        conversation, turn = self._conversation, self._turn
        try:
            last = await self._bus.last(JOURNAL, conversation=conversation, turn=turn)
            if last is None or not is_finished(last.data):
                return []
            records = [last.data]
            try:
                stored = self._bus.history(JOURNAL, conversation=conversation, turn=turn)
                records = [one.data async for one in stored]
            except DecodeError as error:
                log.warning("the journal of %s contains an entry that cannot be read: %s", self._turn, error)
            return feed_items_from_journal(records)
        except BusError as error:
            log.debug("the journal of %s cannot be read now: %s", self._turn, error)
            return []

    async def _is_surely_known(self) -> bool:
        """Call ``_is_known`` twice: a newly elected leader of a stream may not know yet all messages that the
        previous leader accepted.
        """
        if await self._is_known():
            return True
        await anyio.sleep(CAUGHT_UP_WITHIN)
        return await self._is_known()

    async def _is_known(self) -> bool:
        """Report whether the turn was accepted. The inbox is read first, because a turn leaves the inbox only after
        its journal has begun.
        """
        try:
            async for stored in self._bus.history(INBOX, conversation=self._conversation):
                if self._turn in turns_of(stored.data):
                    return True
            last = await self._bus.last(JOURNAL, conversation=self._conversation, turn=self._turn)
            return last is not None
        except DecodeError as error:
            log.warning("the inbox contains an item that cannot be read: %s", error)
            return True
        except BusError as error:
            log.debug("it cannot be determined now whether %s is known: %s", self._turn, error)
            return True


class _LiveItems:
    """The live items that wait for the reader. ``lost`` is true if some were dropped."""

    def __init__(self) -> None:
        self.lost = False
        self._items: deque[FeedItem] = deque(maxlen=BUFFER)
        self._some = anyio.Event()

    async def put(self, received: ReceivedMessage[FeedItem]) -> None:
        self.lost |= len(self._items) == BUFFER
        self._items.append(received.data)
        self._some.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for an item for at most ``seconds``. Report whether there is one."""
        with anyio.move_on_after(seconds):
            while not self._items:
                self._some = anyio.Event()
                await self._some.wait()
        return bool(self._items)

    def drain(self) -> list[FeedItem]:
        items = list(self._items)
        self._items.clear()
        return items


def _covers_position(items: list[FeedItem], chain: Chain) -> bool:
    """Report whether ``items`` holds the item at the end of the position; true for an empty chain and for a position
    of the journal.
    """
    if not chain or chain[-1][0] == JOURNAL_EPOCH:
        return True
    return any((item.epoch, item.index) == chain[-1] for item in items)


def _has_later_epoch(items: list[FeedItem], chain: Chain) -> bool:
    """Report whether ``items`` holds an item of a later epoch than the position's."""
    return any(item.epoch > chain[-1][0] for item in items)


def turns_of(item: InboxItem) -> tuple[str, ...]:
    """Return the turns that an inbox item belongs to or may start."""
    match item:
        case TurnSteered():
            return (item.turn, item.request.turn)
        case _:
            return (item.turn,)
