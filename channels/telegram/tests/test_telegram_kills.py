"""The channel as a process of its own, killed between each pair of steps and at random: nothing is lost or repeated."""

import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

import trunkline
from tests.support.processes import WorkerProcess
from trunkline.api.testing import Platform, platform, wait_until
from trunkline.config.editor import write_settings
from trunkline.testing.scripted_model import ScriptedModel

from .bot_api_server import OWNER, TOKEN, BotApiServer, Fault, bot_api_server

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

KILLS = int(os.environ.get("TELEGRAM_KILLS", "4"))
"""How many random kills; whoever looks for what nobody thought of takes more."""


WORDS = 10
"""Words of an answer that grows."""


class Models:
    """A plugin with a model that says what it is told to say."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        return [ScriptedModel()]


@dataclass
class Installation:
    """A platform without channels in this process, Telegram, and the channels worker as a process."""

    platform: Platform
    server: BotApiServer
    channels: WorkerProcess
    asked: int = 0

    async def start(self) -> None:
        """Start the channels worker again, if it does not run."""
        if not self.channels.alive:
            self.channels.launch()
            await self.channels.ready()

    async def until_answered(self, words: list[str]) -> None:
        """Wait until every word is answered to its end. Each is answered once, and nothing else is shown."""
        with anyio.move_on_after(60 + len(words)):  # one conversation answers one after another
            while not all(self._answers(word) for word in words):
                await self.start()
                await anyio.sleep(0.05)
        assert [len(self._answers(word)) for word in words] == [1] * len(words), self.channels.text()[-3000:]
        assert len(self.server.seen()) == self.asked, self.server.seen()

    def ask(self, word: str) -> None:
        """The owner sends a message, whose answer grows for a while."""
        self.asked += 1
        self.server.say(f"say:{word}. ;; slow:{WORDS}:30")

    def _answers(self, word: str) -> list[str]:
        return [text for text in self.server.seen() if f"{word}." in text and text.endswith(f"word-{WORDS}")]


@pytest.fixture(scope="module")
async def running(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    """The installation, which the tests of this module share."""
    home: Path = tmp_path_factory.mktemp("home")
    async with bot_api_server() as server:
        section = {
            "owners": [OWNER],
            "api_url": server.url,
            "edit_seconds": 0.05,
            "lease_seconds": 1,
            "poll_seconds": 5,
        }
        settings = {f"channels.telegram.{key}": value for key, value in section.items()}
        write_settings(home / "trunkline.toml", {**settings, "channels.enabled": ["telegram"]})
        everyone = ("gateway", "monitor", "tools", "memory")
        config = {"runtime.provider_adapter": "scripted", "channels.enabled": ["telegram"]}
        async with platform(home, plugins=[Models()], config=config, workers=everyone) as started:
            bus = started.instance.bus
            environ = {
                **os.environ, "TRUNKLINE_HOME": str(home), "TELEGRAM_BOT_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1",
                "TRUNKLINE_BUS__URL": bus.url, "TRUNKLINE_BUS__USER": bus.user or "",
                "TRUNKLINE_BUS__PASSWORD": bus.password or "",
            }  # fmt: skip
            channels = WorkerProcess("channels", "channels", home / "channels.log", environ)
            try:
                yield Installation(started, server, channels)
            finally:
                channels.kill()


STEPS = [
    (method, when)
    for method in ("getMe", "setMyCommands", "getUpdates", "sendMessage", "editMessageText")
    for when in ("before", "after")
]


@pytest.mark.parametrize(("method", "when"), STEPS)
async def test_a_kill_between_two_steps_loses_and_repeats_nothing(
    running: Installation, method: str, when: str
) -> None:
    """The process ends before Telegram acts, or after it acted and before the process knows."""
    word = f"{method}-{when}"
    if method in ("getMe", "setMyCommands"):
        running.channels.kill()
    else:
        await running.start()
    running.server.faults.append(Fault(method, **{when: running.channels.kill}))  # type: ignore[arg-type]
    running.ask(word)
    if not running.channels.alive:
        running.channels.launch()
    await wait_until(lambda: not running.server.faults)
    await running.until_answered([word])
    with anyio.fail_after(30):
        await running.server.wait_for_confirmation()


async def test_random_kills_lose_and_repeat_nothing(running: Installation) -> None:
    """Kills at any moment, in the middle of growing answers, while messages arrive."""
    chance = random.Random(15)
    words: list[str] = []
    for number in range(KILLS):
        await running.start()
        words += [f"random-{number}-{each}" for each in range(3)]
        for word in words[-3:]:
            running.ask(word)
        await anyio.sleep(chance.random() * 0.6)
        running.channels.kill()
    await running.until_answered(words)
    running.server.repeat()
    await running.server.wait_for_confirmation()
    await running.until_answered(words)


async def test_an_attached_chat_loses_and_repeats_nothing(running: Installation) -> None:
    """What is said on another channel appears once in the chat, whenever the channels worker is killed."""
    await running.start()
    accepted = await running.platform.send("say:The beginning.")
    conversation = accepted.conversation
    await running.platform.answer(accepted)
    running.server.say(f"/attach {conversation}")
    running.asked += 1
    await wait_until(
        lambda: any(conversation in text or "now shows" in text for text in running.server.seen())
    )
    words: list[str] = []
    chance = random.Random(31)
    for number in range(KILLS):
        await running.start()
        words += [f"elsewhere-{number}-{each}" for each in range(2)]
        for word in words[-2:]:
            running.asked += 1
            await running.platform.send(f"say:{word}. ;; slow:{WORDS}:30", conversation=conversation)
        await anyio.sleep(chance.random() * 0.6)
        running.channels.kill()
    await running.until_answered(words)
    shown = [text for text in running.server.seen() if "elsewhere-" in text]
    assert all(text.startswith("You, in test: say:") for text in shown)
    assert [text.partition("say:")[2].partition(".")[0] for text in shown] == words
