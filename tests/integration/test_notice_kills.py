"""Notices of tasks and of starts and stops, while the processes that could hold them are killed by SIGKILL."""

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.agents.messages import AgentTask

from .approval_helpers import asking
from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

BELL = '''
from pathlib import Path

import anyio
import msgspec

import trunkline
from trunkline.api.channel import Channel


class Bell(Channel):
    """Appends each notice to a file, by which it knows what it told."""

    name = "bell"
    remembers_notices = True

    def __init__(self, file):
        self.file = file

    async def tell(self, notice):
        await anyio.sleep(0.05)  # a kill comes before or after
        told = self.file.read_text().splitlines() if self.file.exists() else []
        if notice.id not in [msgspec.json.decode(line)["id"] for line in told]:
            with self.file.open("a") as file:
                file.write(msgspec.json.encode(notice).decode() + "\\n")

    async def run(self, gateway):
        await anyio.sleep_forever()


@trunkline.hookimpl
def trunkline_channels(settings):
    return [Bell(settings.home / "told")]
'''


def told_file(running: ProcessPlatform) -> Path:
    """Return the file to which the channel appends."""
    return Path(running.environ["TRUNKLINE_HOME"]) / "told"


def told(running: ProcessPlatform, kind: str) -> list[str]:
    """Return the texts of a kind that the owner was told."""
    file = told_file(running)
    lines = file.read_text().splitlines() if file.exists() else []
    return [one["text"] for one in map(json.loads, lines) if one["kind"] == kind]


async def until_told(running: ProcessPlatform, kind: str, count: int) -> list[str]:
    """Wait for so many notices, and a moment longer for one too many."""
    with anyio.move_on_after(60):
        while len(told(running, kind)) < count:  # noqa: ASYNC110  another process writes them
            await anyio.sleep(0.05)
    await anyio.sleep(1.0)
    found = told(running, kind)
    assert len(found) == count, (found, running.logs()[-10_000:])
    return found


def prefer(running: ProcessPlatform, text: str, language: str = "en") -> None:
    """Write the owner's preferences for notices."""
    preferences = f'language = "{language}"\n[notices]\n{text}'
    (running.home.memory / "preferences.toml").write_text(preferences)


@pytest.fixture(scope="module")
async def module_platform(
    provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProcessPlatform]:
    config = asking(
        provider,
        **{
            "permissions.approvals": "none",
            "permissions.allow_shell": True,
            "channels.enabled": ["terminal", "bell"],
        },
    )
    async with process_platform(
        tmp_path_factory.mktemp("notices"), config=config, plugins={"bell": BELL}, workers=ALL_WORKERS
    ) as running:
        yield running


@pytest.fixture
async def running(module_platform: ProcessPlatform) -> AsyncIterator[ProcessPlatform]:
    """The platform with preferences of nobody, and nothing told yet."""
    async with shared_platform(module_platform) as running:
        told_file(running).unlink(missing_ok=True)
        prefer(running, "")
        yield running


def call(tool: str, **arguments: Any) -> str:
    return f"call:{tool} {json.dumps(arguments)}"


async def give(running: ProcessPlatform, *words: str) -> str:
    """Give an agent tasks that end after their turn; return the conversation."""
    tasks = (call("message_agent", name="ada", message=f"slow:10:50\nsay:{word}") for word in words)
    answer = await running.say("\n".join((call("create_agent", name="ada"), *tasks, "say:given")))
    assert answer.text.endswith("given"), answer.text
    return answer.accepted.conversation


async def begin_program(running: ProcessPlatform, command: str) -> str:
    """Begin a program in the background, and return its id."""
    answer = await running.say(f"{call('start_background_task', command=command)}\nquote")
    found = re.search(r"Background task (\w+) runs", answer.text)
    assert found, answer.text
    return found[1]


async def ended(running: ProcessPlatform, conversation: str) -> tuple[AgentTask, ...]:
    """Wait until all tasks of a conversation have ended."""
    with anyio.fail_after(60):
        while True:
            tasks = (await running.gateway.agents(conversation=conversation)).tasks
            if tasks and not any(task.is_running for task in tasks):
                return tasks
            await anyio.sleep(0.05)


async def test_a_task_that_ends_while_no_channel_runs_is_told_once(running: ProcessPlatform) -> None:
    """The gateway that knew of it is killed, too: the next one tells, with the agent, the block and the result."""
    conversation = await give(running, "the first result")
    (task,) = await ended(running, conversation)
    assert task.untold
    running.kill("gateway")
    await running.restart("gateway")
    await running.start("channels")
    (text,) = await until_told(running, "task", 1)
    assert text.startswith("The agent ada of block main finished its task:\n") and "the first result" in text
    (task,) = await ended(running, conversation)
    assert not task.untold


async def test_kills_at_any_moment_lose_and_repeat_no_notice(running: ProcessPlatform) -> None:
    """Gateway and channels are killed in turn while tasks end."""
    chance = random.Random(7)
    words = [f"result-{number}" for number in range(6)]
    await running.start("channels")
    await give(running, *words)
    for name in ("gateway", "channels") * 3:
        await anyio.sleep(chance.uniform(0.1, 1.0))
        running.kill(name)
        await running.restart(name)
    texts = await until_told(running, "task", len(words))
    assert Counter(word for text in texts for word in words if word in text) == Counter(words)


GIVEN = (call("create_agent", name="eve"), call("message_agent", name="eve", message="say:the result"))


async def test_a_task_that_no_agent_looks_at_is_told_after_its_turn(running: ProcessPlatform) -> None:
    """It ends while the agent writes its last answer, and is told after that."""
    await running.start("channels")
    accepted = await running.send("\n".join((*GIVEN, "stall:2")))
    (task,) = await ended(running, accepted.conversation)
    assert task.untold
    await give(running, "another result")
    (text,) = await until_told(running, "task", 1)
    assert "another result" in text
    await running.gateway.cancel(accepted.turn)
    _, text = await until_told(running, "task", 2)
    assert text.endswith("the result")


async def test_a_task_is_not_told_if_the_agent_asks(running: ProcessPlatform) -> None:
    """It tells of it."""
    await running.start("channels")
    question = call("query_agent", name="eve", prompt="say:well")
    answer = await running.say("\n".join((*GIVEN, question, "say:seen")))
    tasks = await ended(running, answer.accepted.conversation)
    assert not any(task.untold for task in tasks) and told(running, "task") == []


async def test_a_notice_is_told_in_the_language_of_the_owner(running: ProcessPlatform) -> None:
    """The gateway gives the sentence, and the channel puts it into words."""
    prefer(running, "", language="de")
    await running.start("channels")
    await give(running, "the result")
    (text,) = await until_told(running, "task", 1)
    assert (
        text.startswith("Der Agent ada von Block main hat seine Aufgabe erledigt:\n") and "the result" in text
    )


async def test_quiet_hours_hold_a_task_back_unless_it_is_urgent(running: ProcessPlatform) -> None:
    """The notice is stored, and told when the owner calls the kind urgent."""
    prefer(running, 'quiet = "00:00-23:59"\ntime_zone = "UTC"')
    await running.start("channels")
    conversation = await give(running, "a quiet result")
    with anyio.fail_after(60):
        while any(one.untold for one in await ended(running, conversation)):  # noqa: ASYNC110  asked over the bus
            await anyio.sleep(0.05)
    assert told(running, "task") == []
    prefer(running, 'quiet = "00:00-23:59"\ntime_zone = "UTC"\nurgent = ["task"]')
    await anyio.sleep(6.0)  # preferences are read again
    await give(running, "a loud result")
    assert len(await until_told(running, "task", 2)) == 2


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
async def test_a_program_that_ends_in_the_background_is_told_once(running: ProcessPlatform) -> None:
    """The tools worker is killed before it can tell. What the agent waited for is not told."""
    task = await begin_program(running, "sleep 1; echo one")
    await running.say(f"{call('wait_background_task', task=task)}\nquote")
    alone = await begin_program(running, "sleep 2; exit 7")
    running.kill("tools")
    await anyio.sleep(3.0)
    await running.restart("tools")
    await running.start("channels")
    (text,) = await until_told(running, "task", 1)
    assert f"{alone}: ended with exit code 7" in text and task not in text


async def test_a_start_a_stop_and_a_kill_are_told_once_each(running: ProcessPlatform) -> None:
    """A restart after a kill says since when the platform was offline."""
    prefer(running, '[notices.kinds]\nonline = ["bell"]')
    await running.start("channels")
    await until_told(running, "online", 1)
    running.kill("channels")
    await running.restart("channels")
    await until_told(running, "online", 2)
    running.processes["channels"].kill(15)
    texts = await until_told(running, "online", 3)
    assert [text.split(" since ")[0] for text in texts] == [
        "Trunkline is online",
        "Trunkline is online",
        "Trunkline is offline",
    ]
    assert ["without a clean stop" in text for text in texts] == [False, True, False]
