"""The order of turns in a conversation when a process dies after a person's decision.

A decision enters the inbox behind the messages that wait for the turn. The tests check the model request of the later
message, and the stored order.
"""

import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import httpx
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.approvals.messages import Approval
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.topology import topology
from trunkline.contracts.turns.feed_messages import TextDelta
from trunkline.contracts.turns.journal_messages import TurnFinished, TurnParked, TurnStarted
from trunkline.contracts.turns.subjects import INBOX, JOURNAL
from trunkline.errors import Unavailable
from trunkline.runtime.partitions import read_partitioning, repartition
from trunkline.testing.platform import text_of

from .approval_helpers import asking, decide, question_of
from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

LONG = "slow:40:50"
LAST_WORD = "word-40"


@pytest.fixture(scope="module")
async def module_platform(
    provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProcessPlatform]:
    home = tmp_path_factory.mktemp("order")
    async with process_platform(home, config=asking(provider), workers=ALL_WORKERS) as running:
        yield running


def write(path: str) -> str:
    """A program whose model asks to write a file, and says much afterwards."""
    return f"call:write_file {json.dumps({'path': path, 'content': 'x'})} ;; {LONG}"


class Story:
    """A conversation of a, b and c: b waits for a person, and c for b."""

    def __init__(self, running: ProcessPlatform, name: str) -> None:
        self.running = running
        self.name = name
        self.turns: list[MessageAccepted] = []

    async def begin(self) -> Approval:
        """Say all three; returns the question of b."""
        first = await self.running.say(f"say:first-{self.name}")
        conversation = first.accepted.conversation
        b = await self.running.send(write(f"{self.name}.md"), conversation=conversation)
        asked = await question_of(self.running, b)
        await self._parked(b)
        c = await self.running.send(f"say:last-{self.name}", conversation=conversation)
        self.turns = [first.accepted, b, c]
        return asked

    async def _parked(self, accepted: MessageAccepted) -> None:
        """Wait until the turn is put down: its message has left the inbox."""
        keys = {"conversation": accepted.conversation}
        with anyio.fail_after(60):
            while [one async for one in self.running.bus.history(INBOX, after=0, **keys)]:  # noqa: ASYNC110
                await anyio.sleep(0.02)
        last = await self.running.bus.last(JOURNAL, conversation=accepted.conversation)
        assert last is not None and isinstance(last.data.entries[-1], TurnParked)

    async def streaming(self, words: int = 3) -> None:
        """Wait until b's answer streams."""
        _, b, _ = self.turns
        with anyio.fail_after(60):
            events: list[Any] = []
            async for event in self.running.gateway.watch(b.conversation, b.turn):
                events.append(event)
                if isinstance(event, TextDelta) and f"word-{words}" in text_of(events):
                    return

    async def check(self, provider: str) -> None:
        """All three are answered, stored and begun in their order, and c's model was given b's whole answer."""
        answers = [await self.running.answer(accepted) for accepted in self.turns]
        assert [answer.ended.code for answer in answers] == [None] * 3
        view = await self.running.gateway.conversation(self.turns[0].conversation, include_tools=True)
        stored = list(dict.fromkeys(message.turn for message in view.messages))
        assert stored == [accepted.turn for accepted in self.turns]
        keys = {"conversation": self.turns[0].conversation}
        steps = [
            (stored.data.turn, type(entry))
            async for stored in self.running.bus.history(JOURNAL, after=0, **keys)
            for entry in stored.data.entries
            if isinstance(entry, TurnStarted | TurnFinished)
        ]
        assert steps == [(one.turn, kind) for one in self.turns for kind in (TurnStarted, TurnFinished)]
        given = await asked_about(provider, f"say:last-{self.name}")
        assert given, "the model was never asked about c"
        for messages in given:
            roles = [message["role"] for message in messages if message["role"] != "system"]
            assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant", "user"]
            assert LAST_WORD in messages[-2]["content"]


async def asked_about(provider: str, text: str) -> list[list[dict[str, Any]]]:
    """The messages of each request whose last one says this."""
    async with httpx.AsyncClient() as http:
        requests = (await http.get(provider.removesuffix("/v1") + "/_requests")).json()
    asked = [request["body"]["messages"] for request in requests if request["method"] == "POST"]
    return [messages for messages in asked if text in str(messages[-1]["content"])]


Blow = Callable[[ProcessPlatform], Awaitable[None]]


async def monitor(running: ProcessPlatform) -> None:
    running.kill("monitor")
    await running.restart("monitor")


async def server(running: ProcessPlatform) -> None:
    running.kill("nats")


async def everything(running: ProcessPlatform) -> None:
    for name in (*running.processes, "nats"):
        running.kill(name)
    await running.start_all(ALL_WORKERS)


async def monitor_and_server(running: ProcessPlatform) -> None:
    running.kill("monitor")
    running.kill("nats")
    await running.restart("monitor")


async def dealt_anew(running: ProcessPlatform) -> None:
    """The inbox is dealt into another number of partitions while no monitor lives."""
    running.kill("monitor")
    partitions = (await read_partitioning(running.bus)).partitions + 1
    with anyio.fail_after(60):
        while True:
            try:
                await repartition(running.bus, topology(), partitions)
                break
            except Unavailable:  # the dead monitor's last beat is still there
                await anyio.sleep(0.2)
    await running.restart("monitor")


async def take_over(running: ProcessPlatform) -> None:
    """Start another monitor and drain the first, which finishes its current turn."""
    await running.start("monitor", "second")
    running.kill("monitor", signal.SIGTERM)
    await running.processes["monitor"].gone()


BLOWS = (monitor, server, everything, monitor_and_server, dealt_anew, take_over)


@pytest.mark.parametrize("blow", BLOWS, ids=lambda blow: blow.__name__)
async def test_a_resumed_turn_keeps_its_place(
    blow: Blow, module_platform: ProcessPlatform, provider: str
) -> None:
    """b is approved, and a process is killed while its answer streams: b is stored before c, and the model receives
    it with c."""
    async with shared_platform(module_platform) as running:
        story = Story(running, blow.__name__)
        asked = await story.begin()
        await decide(running.gateway, asked, True)
        await story.streaming()
        await blow(running)
        await story.check(provider)


async def test_a_turn_decided_while_no_monitor_runs_keeps_its_place(
    module_platform: ProcessPlatform, provider: str
) -> None:
    """The approval arrives while the monitor is dead; the next owner is killed in the middle of the answer, and so
    is the one after it."""
    async with shared_platform(module_platform) as running:
        story = Story(running, "undecided")
        asked = await story.begin()
        running.kill("monitor")
        await decide(running.gateway, asked, True)
        await running.restart("monitor")
        for words in (3, 6):
            await story.streaming(words)
            await monitor(running)
        await story.check(provider)


async def test_several_that_were_parked_keep_their_places(
    module_platform: ProcessPlatform, provider: str
) -> None:
    """Six conversations wait for a person; all are decided about, and everything dies while they answer, twice."""
    async with shared_platform(module_platform) as running:
        stories = [Story(running, f"several-{number}") for number in range(6)]
        questions = [await story.begin() for story in stories]
        for asked in questions:
            await decide(running.gateway, asked, True)
        await stories[0].streaming()
        for _ in range(2):
            await everything(running)
            await stories[0].streaming(2)
        for story in stories:
            await story.check(provider)
