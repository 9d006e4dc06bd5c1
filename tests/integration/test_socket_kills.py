"""Real processes are killed while sockets show a turn: every viewer reads on without a gap and without a repeat."""

from collections.abc import AsyncIterator

import anyio
import pytest
from websockets.exceptions import WebSocketException

from tests.support.processes import ProcessPlatform, process_platform
from tests.support.socket_client import SocketClient, open_socket, shown, turn_of
from trunkline.contracts.turns.journal_messages import TurnStarted
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.workers.gateway.socket.event_envelopes import TurnEndedEnvelope
from trunkline.workers.gateway.socket.server_envelopes import ServerMessage

from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

WORDS = [f"word-{number}" for number in range(1, 41)]
PROGRAM = "slow:40:40"


@pytest.fixture(scope="module")
async def module_platform(
    provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProcessPlatform]:
    config = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
    }
    async with process_platform(
        tmp_path_factory.mktemp("kills"), config=config, workers=ALL_WORKERS
    ) as running:
        yield running


class Viewer:
    """Watches a conversation; when its socket breaks, watches on after the last event that arrived."""

    def __init__(self, running: ProcessPlatform, conversation: str, turn: str) -> None:
        self.running = running
        self.conversation = conversation
        self.turn = turn
        self.events: list[ServerMessage] = []
        self.cuts = 0

    @property
    def ended(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], TurnEndedEnvelope)

    async def watch(self) -> None:
        """Read to the end of the turn."""
        while not self.ended:
            try:
                async with open_socket(self.running.url, self.running.token) as client:
                    await self._read(client)
            except (OSError, WebSocketException):
                self.cuts += 1
                await anyio.sleep(0.05)

    async def _read(self, client: SocketClient) -> None:
        position = getattr(self.events[-1].payload, "position", "") if self.events else ""
        asked = await client.ask("subscribe", conversation=self.conversation, after={self.turn: position})
        if type(asked).__name__ == "ErrorEnvelope":  # memory or the bus is not back yet
            await anyio.sleep(0.1)
            return
        while not self.ended:
            event = await client.receive()
            if turn_of(event) == self.turn:
                self.events.append(event)


async def kill_when(running: ProcessPlatform, victim: str, viewer: Viewer, after: int) -> None:
    while len(viewer.events) < after:  # noqa: ASYNC110  the viewer counts
        await anyio.sleep(0.01)
    running.kill(victim)
    if victim != "nats":
        await running.restart(victim)


async def begun_turns(running: ProcessPlatform, conversation: str) -> int:
    """Return how many turns of a conversation began."""
    records = [one.data async for one in running.bus.history(JOURNAL, conversation=conversation)]
    entries = [entry for record in records for entry in record.entries]
    return sum(isinstance(entry, TurnStarted) for entry in entries)


@pytest.mark.parametrize("victim", ["gateway", "monitor", "memory", "nats"])
async def test_viewers_survive_a_kill_in_mid_turn(victim: str, module_platform: ProcessPlatform) -> None:
    """Three viewers of one turn show the whole answer, each event once, and the turn began once."""
    async with shared_platform(module_platform) as running:
        with anyio.fail_after(120):
            async with open_socket(running.url, running.token) as client:
                sent = (await client.done("chat", content=f"{PROGRAM} ;; say:{victim}")).payload
            viewers = [Viewer(running, sent.conversation, sent.turn) for _ in range(3)]
            async with anyio.create_task_group() as tasks:
                for viewer in viewers:
                    tasks.start_soon(viewer.watch)
                tasks.start_soon(kill_when, running, victim, viewers[0], 12)
        for viewer in viewers:
            ids = [event.id for event in viewer.events]
            assert len(ids) == len(set(ids))
            assert shown(viewer.events).split()[:40] == WORDS
            assert viewer.cuts == 0 or victim == "gateway"
        assert len({shown(viewer.events) for viewer in viewers}) == 1
        assert await begun_turns(running, sent.conversation) == 1


async def test_a_message_repeated_after_a_kill_counts_once(module_platform: ProcessPlatform) -> None:
    """The gateway is killed before the client reads the acknowledgement; the repeat is the same turn."""
    async with shared_platform(module_platform) as running:
        payload = {"content": "say:once", "client_id": "the-one-message"}
        with anyio.fail_after(60):
            async with open_socket(running.url, running.token) as client:
                await client.send("chat", payload)
                running.kill("gateway")
            await running.restart("gateway")
            turns = set()
            for _ in range(2):
                async with open_socket(running.url, running.token) as client:
                    sent = (await client.done("chat", **payload)).payload
                    turns.add(sent.turn)
                    await client.done("subscribe", turn=sent.turn)
                    assert shown(await client.until_end(sent.turn)) == "once"
        assert len(turns) == 1
        assert await begun_turns(running, sent.conversation) == 1
