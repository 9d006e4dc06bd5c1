"""The feeds of turns, each read once for all sockets that watch it.

A socket that joins late, resumes, or fell behind reads the feed by itself until it is at a place that the shared log
has. The position names a reader's whole state (ADR 4), so equal positions are the same place.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from trunkline.contracts.turns.feed_reader import FeedReader
from trunkline.contracts.turns.poll_limiter import PollLimiter
from trunkline.workers.gateway.socket.bounded_log import BoundedLog, ReaderBehind
from trunkline.workers.gateway.socket.turn_envelopes import FeedEntry, TurnPlace, feed_entry
from trunkline_bus import Bus


class TurnFeed(BoundedLog[FeedEntry]):
    """The events of one turn, from its beginning on."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}
        self.scope = anyio.CancelScope()
        self.readers = 0

    def append(self, entry: FeedEntry) -> None:
        """Add an event, and drop old ones that are too many."""
        self._numbers[entry.position] = self.end
        super().append(entry)

    def number_after(self, position: str) -> int | None:
        """Return the number of the entry after a position; None if the log does not have that place."""
        if not position:
            return 0 if self.begin == 0 else None
        number = self._numbers.get(position)
        return None if number is None else number + 1

    def _drop(self, entry: FeedEntry) -> None:
        super()._drop(entry)
        del self._numbers[entry.position]


class TurnFeeds:
    """The feeds that sockets watch now. ``tasks`` runs their readers."""

    def __init__(self, bus: Bus, poll_limiter: PollLimiter, tasks: TaskGroup) -> None:
        self._bus = bus
        self._poll_limiter = poll_limiter
        self._tasks = tasks
        # by the whole place: a client names the turn, and only its conversation was checked
        self._feeds: dict[TurnPlace, TurnFeed] = {}

    async def watch(self, place: TurnPlace, after: str = "") -> AsyncGenerator[FeedEntry | None, None]:
        """Yield the events of a turn after a position, to its end, and None where the caller fell behind the log: the
        next event is the one after the last event all the same.

        Raises ValueError if ``after`` is no position, and ``TurnNotFound``.
        """
        with self._joined(place) as feed:
            while True:
                if feed.number_after(after) is None:
                    async with aclosing(self._read_alone(place, after)) as entries:
                        async for entry in entries:
                            yield entry
                            after = entry.position
                            if entry.ends:
                                return
                            if feed.number_after(after) is not None:
                                break
                number = feed.number_after(after)
                try:
                    while number is not None:
                        entry = await feed.read(number)
                        yield entry
                        number, after = number + 1, entry.position
                        if entry.ends:
                            return
                except ReaderBehind:
                    yield None

    @contextmanager
    def _joined(self, place: TurnPlace) -> Iterator[TurnFeed]:
        feed = self._feeds.get(place)
        if feed is None:
            feed = self._feeds[place] = TurnFeed()
            self._tasks.start_soon(self._fill, feed, place)
        feed.readers += 1
        try:
            yield feed
        finally:
            feed.readers -= 1
            if not feed.readers:
                del self._feeds[place]
                feed.scope.cancel()

    async def _fill(self, feed: TurnFeed, place: TurnPlace) -> None:
        with feed.scope:
            try:
                async with aclosing(self._read_alone(place, "")) as entries:
                    async for entry in entries:
                        feed.append(entry)
                        await anyio.lowlevel.checkpoint()  # a burst of events leaves no reader behind
            except Exception as error:  # the sockets that watch the turn report it
                feed.fail(error)

    async def _read_alone(self, place: TurnPlace, after: str) -> AsyncGenerator[FeedEntry, None]:
        reader = FeedReader(
            self._bus, place.conversation, place.turn, after=after, poll_limiter=self._poll_limiter
        )
        async with aclosing(reader.events()) as events:
            async for event in events:
                yield feed_entry(place, reader.position, event, reader.lane)
