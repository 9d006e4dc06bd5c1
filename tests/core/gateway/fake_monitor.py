"""A monitor for the gateway's tests: it keeps the wire protocol and follows the test's instructions."""

from collections.abc import Awaitable, Callable
from typing import Literal

import anyio

from trunkline.contracts.conversations.messages import AppendConversation, Message, Usage
from trunkline.contracts.gateway.subjects import STORE_MESSAGES
from trunkline.contracts.turns.feed_messages import FeedEvent, FeedItem, TextDelta, TurnEnded
from trunkline.contracts.turns.journal_messages import (
    JournalEntry,
    ModelCallFinished,
    ModelCallPlanned,
    TurnFinished,
    TurnRecord,
    TurnStarted,
)
from trunkline.contracts.turns.messages import FinishReason, InboxItem, TurnFact, TurnRequested
from trunkline.contracts.turns.subjects import FEED, INBOX, JOURNAL, TURN_FACT
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline_bus import Bus, BusError, Scope, StoredMessage

USAGE = Usage(input_tokens=7, output_tokens=3)


class FakeTurn:
    """A turn that the fake monitor answers."""

    def __init__(self, bus: Bus, request: TurnRequested, epoch: int = 1) -> None:
        self._bus = bus
        self.request = request
        self.epoch = epoch
        self._index = 0

    async def begin(self) -> None:
        """Record that the turn began."""
        await self.journal(TurnStarted(request=self.request, model="fake"), ModelCallPlanned(step=0))
        await self._note("started")

    async def journal(self, *entries: JournalEntry) -> None:
        """Record entries."""
        record = TurnRecord(turn=self.request.turn, epoch=self.epoch, owner="fake", entries=entries)
        scope = Scope(
            block=self.request.block, conversation=self.request.conversation, turn=self.request.turn
        )
        await self._bus.append(JOURNAL, record, scope=scope, **self._keys())

    async def show(self, *events: FeedEvent) -> None:
        """Publish events at the next positions."""
        for event in events:
            item = FeedItem(turn=self.request.turn, epoch=self.epoch, index=self._index, event=event)
            await self._bus.publish(FEED, item, **self._keys())
            self._index += 1

    async def say(self, text: str, *, offset: int = 0, step: int = 0) -> None:
        """Show a piece of text."""
        await self.show(TextDelta(step=step, offset=offset, text=text))

    def take_over(self) -> None:
        """From now on speak as the next owner."""
        self.epoch += 1
        self._index = 0

    async def end(
        self,
        text: str = "",
        *,
        reason: FinishReason = "stop",
        between: tuple[Message, ...] = (),
        code: ErrorCode | None = None,
    ) -> None:
        """Store the messages, record the end, and publish it."""
        turn, request = self.request.turn, self.request
        answer = Message(id=f"msg_answer_{turn}", role="assistant", content=text, turn=turn)
        messages = (request.message, *between, *((answer,) if text else ()))
        append = AppendConversation(
            block=request.block, conversation=request.conversation, messages=messages, actor="fake"
        )
        await insist(lambda: self._bus.call(STORE_MESSAGES, append, timeout=2.0))
        message_id = answer.id if text else None
        await self.journal(
            ModelCallFinished(step=0, text=text, usage=USAGE),
            TurnFinished(reason=reason, message_id=message_id, usage=USAGE, code=code),
        )
        sentence = FIXED_SENTENCES[code] if code else None
        await self.show(
            TurnEnded(reason=reason, message_id=message_id, usage=USAGE, code=code, sentence=sentence)
        )
        await self._note("finished")

    async def _note(self, fact: Literal["started", "finished"]) -> None:
        request = self.request
        noted = TurnFact(turn=request.turn, block=request.block, conversation=request.conversation, fact=fact)
        await self._bus.publish(TURN_FACT, noted, block=request.block, fact=fact)

    def _keys(self) -> dict[str, str]:
        return {"conversation": self.request.conversation, "turn": self.request.turn}


async def insist(act: Callable[[], Awaitable[object]]) -> None:
    """Do what may be repeated until it is done."""
    while True:
        try:
            await act()
            return
        except BusError:
            await anyio.sleep(0.05)


Script = Callable[[FakeTurn], Awaitable[None]]


async def echo(turn: FakeTurn) -> None:
    """Answer with the text of the message."""
    text = f"You said: {turn.request.message.content}"
    await turn.say(text)
    await turn.end(text)


class FakeMonitor:
    """Takes messages out of the inbox as they come and plays the script for each. ``seen`` is all that came."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.script: Script = echo
        self.seen: list[InboxItem] = []
        self.paused = False

    async def run(self) -> None:
        """Work until cancelled."""
        done: set[int] = set()
        async with anyio.create_task_group() as tasks:
            while True:
                for stored in await self._waiting():
                    if stored.seq not in done and not self.paused:
                        done.add(stored.seq)
                        self.seen.append(stored.data)
                        tasks.start_soon(self._serve, stored.seq, stored.data)
                await anyio.sleep(0.01)

    async def forget(self) -> None:
        """Finish the received turns, and start as new."""
        self.paused = False
        with anyio.fail_after(60):
            while await self._waiting():  # noqa: ASYNC110  it is asked over the bus
                await anyio.sleep(0.01)
        self.script = echo
        self.seen.clear()

    async def _waiting(self) -> list[StoredMessage[InboxItem]]:
        try:
            return [stored async for stored in self._bus.history(INBOX)]
        except BusError:
            return []

    async def _serve(self, seq: int, item: InboxItem) -> None:
        if isinstance(item, TurnRequested):
            turn = FakeTurn(self._bus, item)
            await turn.begin()
            await self.script(turn)
        await insist(lambda: self._bus.delete(INBOX, seq))

    @property
    def requests(self) -> list[TurnRequested]:
        """The messages that came."""
        return [item for item in self.seen if isinstance(item, TurnRequested)]
