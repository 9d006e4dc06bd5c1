"""The turns of a conversation, one after the other: the running one, and each later one when it begins."""

from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

import anyio

from trunkline.contracts.turns.feed_events import is_finished
from trunkline.contracts.turns.messages import TurnFact
from trunkline.contracts.turns.poll_limiter import PollLimiter
from trunkline.contracts.turns.subjects import JOURNAL, TURN_FACT
from trunkline_bus import Bus, BusError, DecodeError, ReceivedMessage, StoredMessage
from trunkline_bus.backoff import Backoff

WAITING = 64
"""The number of turns that wait for a slow reader. It reads further ones from the journal."""

LOOK_SECONDS = 30.0
"""Seconds after which a reader without a new turn looks into the journal: the message that a turn began may be lost."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between two attempts to read the journal while the bus does not answer."""


class _News:
    """The turns that began since the reader looked. ``lost`` is true if there may be more."""

    def __init__(self) -> None:
        self.lost = False
        self._turns: deque[str] = deque(maxlen=WAITING)
        self._some = anyio.Event()

    def add(self, turn: str) -> None:
        self.lost |= len(self._turns) == WAITING
        self._turns.append(turn)
        self._some.set()

    def lose(self) -> None:
        self.lost = True
        self._some.set()

    async def wait(self, seconds: float) -> None:
        """Wait for news, at most so long. Then ``lost`` is true."""
        with anyio.move_on_after(seconds):
            while not self._turns and not self.lost:
                self._some = anyio.Event()
                await self._some.wait()
            return
        self.lost = True

    def take(self) -> list[str]:
        turns = list(self._turns)
        self._turns.clear()
        return turns


class ConversationTurns:
    """Tells readers which turns begin. ``open`` before use."""

    def __init__(self, bus: Bus, poll_limiter: PollLimiter) -> None:
        self._bus = bus
        self._poll_limiter = poll_limiter
        self._readers: dict[str, list[_News]] = {}

    async def open(self) -> None:
        """Listen on the bus, for as long as it is connected."""
        await self._bus.subscribe(TURN_FACT, self._note, limit=1, confirm=False, fact="started")
        self._bus.on_reconnect(self._note_gap)

    async def watch(self, conversation: str, after: str | None) -> AsyncGenerator[str, None]:
        """Yield the turn ``after``, then every later turn of the conversation, for ever. Without ``after`` begin with
        the turn that has not ended, if there is one.
        """
        with self._reader(conversation) as news:
            newest = await self._newest(conversation)
            if after is not None:
                turn = after
                yield turn
                news.lost = True
            else:
                turn = newest.data.turn if newest is not None else ""
                if newest is not None and not is_finished(newest.data):
                    yield turn
            while True:
                await news.wait(self._poll_limiter.interval(LOOK_SECONDS))
                begun, lost, news.lost = news.take(), news.lost, False
                for next_turn in await self._later(conversation, turn) if lost else begun:
                    if next_turn != turn:
                        turn = next_turn
                        yield turn

    @contextmanager
    def _reader(self, conversation: str) -> Iterator[_News]:
        news = _News()
        readers = self._readers.setdefault(conversation, [])
        readers.append(news)
        try:
            yield news
        finally:
            readers.remove(news)
            if not readers:
                del self._readers[conversation]

    async def _note(self, received: ReceivedMessage[TurnFact]) -> None:
        if received.gap:
            await self._note_gap()
        for news in self._readers.get(received.data.conversation, ()):
            news.add(received.data.turn)

    async def _note_gap(self) -> None:
        for readers in self._readers.values():
            for news in readers:
                news.lose()

    async def _later(self, conversation: str, turn: str) -> list[str]:
        """Return the turns that began after this one, in their order."""
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            found: dict[str, None] = {}
            try:
                last = await self._bus.last(JOURNAL, conversation=conversation, turn=turn) if turn else None
                begin = last.seq if last is not None else 0
                async for stored in self._bus.history(JOURNAL, after=begin, conversation=conversation):
                    found[stored.keys["turn"]] = None
            except DecodeError:  # a later version wrote an entry
                return list(found)
            except BusError:
                await backoff.sleep()
            else:
                return list(found)

    async def _newest(self, conversation: str) -> StoredMessage | None:  # type: ignore[type-arg]
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            try:
                return await self._bus.last(JOURNAL, conversation=conversation)
            except DecodeError:
                return None
            except BusError:
                await backoff.sleep()
