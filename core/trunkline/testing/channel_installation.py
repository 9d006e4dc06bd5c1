"""A platform, a scripted chat service, and the channel between them as a process that a test may kill.

::

    async with chat_service() as service, channel_installation(home, "doorbell", section, service) as installation:
        words = await installation.kill_at_random(20)
        await installation.until_answered(words)
"""

import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Generic, Protocol, TypeVar

import anyio

from trunkline.config.editor import write_settings
from trunkline.contracts.hooks.markers import hookimpl
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.testing.worker_process import WorkerProcess

WORDS = 10
"""Words of an answer that grows."""

MESSAGES_PER_KILL = 3
"""Messages that arrive before each random kill."""

STALLED_SECONDS = 150.0
"""Seconds without anything new after which an answer counts as lost."""

WORKERS: Sequence[WorkerKind] = ("gateway", "monitor", "tools", "memory")
"""The workers beside the channel. They run in the test's process."""


class ChatService(Protocol):
    """A scripted chat service, as far as an installation needs it."""

    def say(self, text: str) -> object:
        """The owner writes."""
        ...

    def seen(self) -> Sequence[str]:
        """Return the texts that the owner is shown, the oldest first."""
        ...


S = TypeVar("S", bound=ChatService)


@dataclass(frozen=True, slots=True)
class KillResult:
    """The outcome of kills: messages that were not answered, and answers and other texts that were shown once too
    often.
    """

    kills: int
    messages: int
    lost: tuple[str, ...]
    repeated: tuple[str, ...]


class ScriptedModelPlugin:
    """A plugin with a model that says what it is told to say."""

    @hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        """Return the model."""
        return [ScriptedModel()]


@dataclass
class ChannelInstallation(Generic[S]):
    """A platform without channels in this process, a chat service, and the channels worker as a process.

    ``asked`` counts the messages whose answers the service must show. ``settled`` tells whether the service has nothing
    left that the channel must take.
    """

    platform: Platform
    service: S
    channels: WorkerProcess
    settled: Callable[[], bool] = lambda: True
    asked: int = 0

    async def start(self) -> None:
        """Start the channels worker again, if it does not run."""
        if not self.channels.alive:
            self.channels.launch()
            await self.channels.ready()

    def ask(self, word: str) -> None:
        """The owner sends a message, whose answer grows for a while."""
        self.asked += 1
        self.service.say(f"say:{word}. ;; slow:{WORDS}:30")

    async def until_answered(self, words: Sequence[str]) -> None:
        """Wait until every word is answered to its end. Raises AssertionError if a word is not answered, is answered
        twice, or if anything else is shown.
        """
        result = await self.result(0, words)
        assert (result.lost, result.repeated) == ((), ()), self.channels.text()[-3000:]

    async def result(self, kills: int, words: Sequence[str]) -> KillResult:
        """Wait for the answers to these words, and count what was lost and repeated. A word counts as lost if it is not
        answered when nothing new has been shown for ``STALLED_SECONDS``: a busy machine is late and loses nothing.
        """
        shown, since = -1, monotonic()
        while not (all(self._answers(words).values()) and self.settled()):
            if len(self.service.seen()) != shown:
                shown, since = len(self.service.seen()), monotonic()
            if monotonic() - since > STALLED_SECONDS:
                break
            await self.start()
            await anyio.sleep(0.05)
        counts = self._answers(words)
        seen = self.service.seen()
        lost = tuple(word for word, count in counts.items() if not count)
        repeated = [word for word, count in counts.items() if count > 1]
        if not repeated and len(seen) + len(lost) > self.asked:
            repeated += [text for text, count in Counter(seen).items() if count > 1] or [seen[-1]]
        return KillResult(kills, len(words), lost, tuple(repeated))

    async def kill_at_random(self, kills: int, *, seed: int = 15, longest: float = 0.6) -> list[str]:
        """Kill the channel at any moment within ``longest`` seconds after messages, in the middle of growing answers,
        and wait for the answers to all messages. Return their words. Raises AssertionError as ``until_answered`` does.
        """
        words = await self.strike(kills, seed=seed, longest=longest)
        await self.until_answered(words)
        return words

    async def strike(
        self, kills: int, *, seed: int, longest: float = 0.6, prefix: str = "random"
    ) -> list[str]:
        """Do the same without waiting for the answers. The words begin with ``prefix``."""
        chance = random.Random(seed)
        words: list[str] = []
        for number in range(kills):
            await self.start()
            sent = [f"{prefix}-{number}-{each}" for each in range(MESSAGES_PER_KILL)]
            for word in sent:
                self.ask(word)
            words += sent
            await anyio.sleep(chance.random() * longest)
            self.channels.kill()
        return words

    def _answers(self, words: Sequence[str]) -> dict[str, int]:
        ends = (f"word-{WORDS}", f"word\\-{WORDS}")
        whole = [text for text in self.service.seen() if text.endswith(ends)]
        return {word: sum(f"{word}." in text for text in whole) for word in words}


@asynccontextmanager
async def channel_installation(
    home: Path,
    channel: str,
    section: Mapping[str, object],
    service: S,
    environ: Mapping[str, str] | None = None,
    *,
    settled: Callable[[], bool] = lambda: True,
) -> AsyncIterator[ChannelInstallation[S]]:
    """Run a platform for a channel within the context. The channel's process is not started yet.

    Args:
        home: the home folder.
        channel: the name of the channel, which is the only one that is enabled.
        section: the settings of the channel; names may be dotted.
        service: the scripted chat service.
        environ: variables of the channel's process, such as its token.
        settled: whether the service has nothing left that the channel must take.
    """
    settings = {f"channels.{channel}.{key}": value for key, value in section.items()}
    write_settings(home / "trunkline.toml", {**settings, "channels.enabled": [channel]})
    config = {"runtime.provider_adapter": "scripted", "channels.enabled": [channel]}
    async with platform(home, plugins=[ScriptedModelPlugin()], config=config, workers=WORKERS) as started:
        bus = started.instance.bus
        whole = {
            **os.environ, **(environ or {}), "TRUNKLINE_HOME": str(home), "PYTHONUNBUFFERED": "1",
            "TRUNKLINE_BUS__URL": bus.url, "TRUNKLINE_BUS__USER": bus.user or "",
            "TRUNKLINE_BUS__PASSWORD": bus.password or "",
        }  # fmt: skip
        channels = WorkerProcess("channels", "channels", home / "channels.log", whole)
        try:
            yield ChannelInstallation(started, service, channels, settled)
        finally:
            channels.kill()
