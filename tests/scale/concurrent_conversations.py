"""Many conversations that never stop talking, each with its next message waiting behind the one that is answered."""

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from trunkline.contracts.gateway.messages import MessageAccepted, SendMessage
from trunkline.contracts.turns.journal_messages import TurnFinished
from trunkline.contracts.turns.messages import TurnFact
from trunkline.contracts.turns.subjects import JOURNAL, TURN_FACT
from trunkline.errors import Unavailable
from trunkline.testing.platform import PlatformClient
from trunkline_bus import BusError, ReceivedMessage, RemoteFault

WAITING = 2
"""How many messages of a conversation are under way at once: one is answered, the others queue behind it."""

PEOPLE = 16
"""Conversations enough for each of 4 or 8 partitions to have one."""

LETTER = "y"
"""The beginning of the marks. The ids of the conversations come of the marks, and so do their partitions. With some
other letters one of 8 partitions has no conversation, so nobody takes it."""

UNTOLD = 2.0
"""Seconds after which the journal is asked whether a turn has ended, because the fact may be lost with its monitor."""


@dataclass(slots=True)
class SentMessage:
    """An accepted message, and the only right answer to it."""

    accepted: MessageAccepted
    mark: str
    ended: anyio.Event = field(default_factory=anyio.Event)
    end: float = 0.0


class ConcurrentConversations:
    """``people`` conversations. ``program`` gives the instructions before the answer of a mark, such as ``wait:0.5``.

    ``said`` has the accepted messages, by conversation, in order.
    """

    def __init__(self, talker: PlatformClient, people: int, program: Callable[[str], str]) -> None:
        self.said: dict[str, list[SentMessage]] = {}
        self.stopping = False
        self._talker = talker
        self._people = people
        self._program = program
        self._turns: dict[str, SentMessage] = {}

    @property
    def everything(self) -> list[SentMessage]:
        """All that was said."""
        return [said for conversation in self.said.values() for said in conversation]

    async def talk(self) -> None:
        """Talk until ``stopping`` is set and all is answered."""
        heard = await self._talker.bus.subscribe(TURN_FACT, self._hear, fact="finished")
        async with anyio.create_task_group() as tasks:
            for number in range(self._people):
                tasks.start_soon(self._person, number)
        await heard.aclose()

    async def _hear(self, received: ReceivedMessage[TurnFact]) -> None:
        self._over(received.data.turn)

    def _over(self, turn: str) -> None:
        said = self._turns.get(turn)
        if said is not None and not said.ended.is_set():
            said.end = anyio.current_time()
            said.ended.set()

    async def _person(self, number: int) -> None:
        mine: list[SentMessage] = []
        while not self.stopping or not mine:
            mine.append(await self._say(number, mine))
            if len(mine) >= WAITING:
                await self._until_ended(mine[-WAITING])
        for said in mine[-WAITING:]:
            await self._until_ended(said)

    async def _say(self, number: int, mine: list[SentMessage]) -> SentMessage:
        mark = f"{LETTER}{number}m{len(mine)}"
        conversation = mine[0].accepted.conversation if mine else None
        message = SendMessage(
            content=f"{self._program(mark)} ;; say:{mark}", conversation=conversation, client_id=mark
        )
        said = SentMessage(await self._sent(message), mark)
        self.said.setdefault(said.accepted.conversation, mine)
        self._turns[said.accepted.turn] = said
        return said

    async def _sent(self, message: SendMessage) -> MessageAccepted:
        while True:
            try:
                return await self._talker.gateway.send(message)
            except (Unavailable, RemoteFault, BusError):
                await anyio.sleep(0.2)

    async def _until_ended(self, said: SentMessage) -> None:
        while not said.ended.is_set():
            with anyio.move_on_after(UNTOLD):
                await said.ended.wait()
            keys = {"conversation": said.accepted.conversation, "turn": said.accepted.turn}
            if not said.ended.is_set():
                last = await self._talker.bus.last(JOURNAL, **keys)
                if last is not None and isinstance(last.data.entries[-1], TurnFinished):
                    self._over(said.accepted.turn)
