"""A platform, a chat service in scripted form, and the channel between them as a process that a test may kill."""

import os
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio

import trunkline
from trunkline.api.testing import Platform, platform
from trunkline.config.editor import write_settings
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.testing.scripted_model import ScriptedModel

from .processes import WorkerProcess

WORDS = 10
"""Words of an answer that grows."""


class ChatServer(Protocol):
    """What the tests need of a scripted chat service."""

    def say(self, text: str) -> object:
        """The owner writes."""
        ...

    def seen(self) -> Sequence[str]:
        """Return what the bot shows to the owner, the oldest first."""
        ...


class Models:
    """A plugin with a model that says what it is told to say."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        return [ScriptedModel()]


@dataclass
class ChatInstallation:
    """A platform without channels in this process, a chat service, and the channels worker as a process."""

    platform: Platform
    server: ChatServer
    channels: WorkerProcess
    asked: int = 0

    async def start(self) -> None:
        """Start the channels worker again, if it does not run."""
        if not self.channels.alive:
            self.channels.launch()
            await self.channels.ready()

    def ask(self, word: str) -> None:
        """The owner sends a message, whose answer grows for a while."""
        self.asked += 1
        self.server.say(f"say:{word}. ;; slow:{WORDS}:30")

    async def until_answered(self, words: Sequence[str]) -> None:
        """Wait until every word is answered to its end. Each is answered once, and nothing else is shown."""
        with anyio.move_on_after(60 + len(words)):  # one conversation answers one after another
            while not all(self._answers(word) for word in words):
                await self.start()
                await anyio.sleep(0.05)
        assert [len(self._answers(word)) for word in words] == [1] * len(words), self.channels.text()[-3000:]
        assert len(self.server.seen()) == self.asked, self.server.seen()

    async def kill_at_random(self, kills: int) -> list[str]:
        """Kill the channel at any moment, in the middle of growing answers, while messages arrive; return their words
        when all are answered.
        """
        chance = random.Random(15)
        words: list[str] = []
        for number in range(kills):
            await self.start()
            words += [f"random-{number}-{each}" for each in range(3)]
            for word in words[-3:]:
                self.ask(word)
            await anyio.sleep(chance.random() * 0.6)
            self.channels.kill()
        await self.until_answered(words)
        return words

    def _answers(self, word: str) -> list[str]:
        ends = (f"word-{WORDS}", f"word\\-{WORDS}")
        return [text for text in self.server.seen() if f"{word}." in text and text.endswith(ends)]


@asynccontextmanager
async def chat_installation(
    home: Path,
    channel: str,
    section: Mapping[str, object],
    server: ChatServer,
    environ: Mapping[str, str],
) -> AsyncIterator[ChatInstallation]:
    """Run a platform for a channel with these settings. ``environ`` has the channel's secrets."""
    settings = {f"channels.{channel}.{key}": value for key, value in section.items()}
    write_settings(home / "trunkline.toml", {**settings, "channels.enabled": [channel]})
    everyone: Sequence[WorkerKind] = ("gateway", "monitor", "tools", "memory")
    config = {"runtime.provider_adapter": "scripted", "channels.enabled": [channel]}
    async with platform(home, plugins=[Models()], config=config, workers=everyone) as started:
        bus = started.instance.bus
        whole = {
            **os.environ, **environ, "TRUNKLINE_HOME": str(home), "PYTHONUNBUFFERED": "1",
            "TRUNKLINE_BUS__URL": bus.url, "TRUNKLINE_BUS__USER": bus.user or "",
            "TRUNKLINE_BUS__PASSWORD": bus.password or "",
        }  # fmt: skip
        channels = WorkerProcess("channels", "channels", home / "channels.log", whole)
        try:
            yield ChatInstallation(started, server, channels)
        finally:
            channels.kill()


def random_kills(channel: str) -> int:
    """Return how many random kills a test makes; whoever looks for what nobody thought of takes more."""
    return int(os.environ.get(f"{channel.upper()}_KILLS", "4"))
