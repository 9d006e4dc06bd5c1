"""A monitor is killed before, while and after it compacts: there is one summary record, and nothing is lost."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.conversations.messages import AppendConversation, ConversationSlice, LoadConversation
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.gateway.subjects import LOAD_MESSAGES, STORE_MESSAGES
from trunkline.contracts.turns.feed_messages import TextDelta
from trunkline.testing.platform import BLOCK, TurnAnswer

from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

ADAPTER = '''
"""A model that notes its requests in a file. It writes a summary when the file ``go`` is there."""

import json
from pathlib import Path

import anyio
import trunkline
from trunkline.api.model import Finish, ModelAdapter, Text, Usage

FOLDER = Path(__file__).parent


class Noting(ModelAdapter):
    name = "noting"
    vendor = "noting"

    async def stream(self, request):
        said = [message.content for message in request.messages if message.role != "system"]
        with (FOLDER / "requests.jsonl").open("a") as notes:
            notes.write(json.dumps([request.purpose, request.conversation, said]) + "\\n")
        if request.purpose == "summary":
            while not (FOLDER / "go").exists():
                await anyio.sleep(0.02)
            yield Text("The code is 4711.")
        elif said[-1].startswith("slow"):
            for number in range(40):
                yield Text(f"word-{number} ")
                await anyio.sleep(0.05)
        else:
            yield Text("Well. " + "And so on. " * 150)
        size = 9_000 if said[-1].startswith("big") else 100
        yield Finish(usage=Usage(input_tokens=size, output_tokens=5), model="noting")

    async def count_tokens(self, request):
        return 100


@trunkline.hookimpl
def trunkline_models():
    return [Noting()]
'''


@pytest.fixture(scope="module")
async def module_platform(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProcessPlatform]:
    config = {
        "runtime.provider_adapter": "noting",
        "monitor.context_window": 10_000,
        "plugins.compaction.keep_messages": 2,
        "plugins.compaction.keep_messages_on_command": 2,
    }
    home = tmp_path_factory.mktemp("kills")
    plugins = {"noting": ADAPTER}
    async with process_platform(home, config=config, plugins=plugins, workers=ALL_WORKERS) as running:
        yield running


class Talk:
    """One conversation at a platform whose monitor is killed."""

    def __init__(self, running: ProcessPlatform) -> None:
        self.running = running
        self.folder: Path = running.home.path / "test-plugins"
        self.conversation: str | None = None
        (self.folder / "go").unlink(missing_ok=True)

    async def send(self, text: str) -> MessageAccepted:
        accepted = await self.running.send(text, conversation=self.conversation)
        self.conversation = accepted.conversation
        return accepted

    async def say(self, text: str) -> TurnAnswer:
        return await self.running.answer(await self.send(text))

    def requests(self, purpose: str) -> list[list[str]]:
        """The messages of the model's requests in this conversation."""
        lines = (self.folder / "requests.jsonl").read_text().splitlines()
        noted: list[Any] = [json.loads(line) for line in lines]
        return [said for why, where, said in noted if (why, where) == (purpose, self.conversation)]

    def let_go(self) -> None:
        """Let the model write summaries."""
        (self.folder / "go").touch()

    async def loaded(self) -> ConversationSlice:
        assert self.conversation is not None
        query = LoadConversation(block=BLOCK, conversation=self.conversation)
        return await self.running.bus.call(LOAD_MESSAGES, query)

    async def record(self) -> SummaryRecord:
        """Wait for the summary record; there is no other one before it."""

        async def is_there() -> bool:
            return (await self.loaded()).summary_record is not None

        await until(is_there)
        record = (await self.loaded()).summary_record
        assert record is not None and record.previous == ""
        return record

    async def is_summarising(self) -> bool:
        return len(self.requests("summary")) > 0


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(90):
        while not await holds():  # noqa: ASYNC110 - another process decides
            await anyio.sleep(0.02)


async def check_continuation(talk: Talk, record: SummaryRecord) -> None:
    """The next turns use the record, and no second one is made for the same messages."""
    await talk.say("Go on.")
    await talk.say("And on.")
    first = talk.requests("turn")[-1][0]
    assert "The code is 4711." in first
    found = await talk.loaded()
    assert found.summary_record == record
    assert [m.content for m in found.messages if m.role == "user"][:2] == ["One.", "Two."]


async def long_talk(running: ProcessPlatform) -> Talk:
    """A conversation that is about to be compacted."""
    talk = Talk(running)
    for text in ("One.", "Two.", "big"):
        await talk.say(text)
    return talk


async def test_a_monitor_killed_while_it_summarises_leaves_it_to_the_next(
    module_platform: ProcessPlatform,
) -> None:
    """The summary that was being written is lost, and the next monitor writes one."""
    async with shared_platform(module_platform) as running:
        talk = await long_talk(running)
        await until(talk.is_summarising)
        running.kill("monitor")
        talk.let_go()
        await running.restart("monitor")
        record = await talk.record()
        assert record.count == 4 and len(talk.requests("summary")) == 2
        await check_continuation(talk, record)


async def test_a_monitor_killed_before_it_summarises_leaves_it_to_the_next(
    module_platform: ProcessPlatform,
) -> None:
    """The turn that ended is a stored fact, so its conversation is compacted after a restart."""
    async with shared_platform(module_platform) as running:
        talk = await long_talk(running)
        running.kill("monitor")
        talk.let_go()
        await running.restart("monitor")
        await check_continuation(talk, await talk.record())


async def test_a_monitor_killed_after_it_stored_the_record_makes_no_second(
    module_platform: ProcessPlatform,
) -> None:
    """The fact comes again, and the record names its turn."""
    async with shared_platform(module_platform) as running:
        talk = Talk(running)
        talk.let_go()
        for text in ("One.", "Two.", "big"):
            await talk.say(text)
        record = await talk.record()
        running.kill("monitor")
        await running.restart("monitor")
        await check_continuation(talk, record)
        assert len(talk.requests("summary")) == 1


async def test_a_command_survives_the_kill_of_its_monitor(module_platform: ProcessPlatform) -> None:
    """The turn of ``/compact`` goes on in the next monitor and tells the outcome; undo works afterwards."""
    async with shared_platform(module_platform) as running:
        talk = Talk(running)
        for text in ("One.", "Two.", "Three."):
            await talk.say(text)
        accepted = await talk.send("/compact")
        await until(talk.is_summarising)
        running.kill("monitor")
        talk.let_go()
        await running.restart("monitor")
        answer = await running.answer(accepted)
        assert answer.text.startswith("The first 4 messages are summarised")
        await talk.record()
        running.kill("monitor")
        await running.restart("monitor")
        assert "is withdrawn" in (await talk.say("/compact undo")).text
        assert (await talk.loaded()).summary_record is None


async def test_a_taken_over_turn_sends_the_same_request(module_platform: ProcessPlatform) -> None:
    """By the record in its journal, even if the record was withdrawn in the meantime."""
    async with shared_platform(module_platform) as running:
        talk = Talk(running)
        talk.let_go()
        for text in ("One.", "Two.", "Three.", "/compact"):
            await talk.say(text)
        record = await talk.record()
        accepted = await talk.send("slow")
        async for event in running.gateway.watch(accepted.conversation, accepted.turn):
            if isinstance(event, TextDelta):
                break
        running.kill("monitor")
        withdrawal = AppendConversation(
            block=BLOCK,
            conversation=accepted.conversation,
            messages=(),
            actor="test",
            withdrawn_record=record.id,
        )
        await running.bus.call(STORE_MESSAGES, withdrawal)
        await running.restart("monitor")
        await running.answer(accepted)
        before, after = talk.requests("turn")[-2:]
        assert before == after and "The code is 4711." in before[0]
