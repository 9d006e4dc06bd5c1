"""The channel as a process of its own, killed between each pair of steps and at random: nothing is lost or repeated."""

import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup

import trunkline
from tests.support.processes import WorkerProcess
from trunkline.api.testing import platform, wait_until
from trunkline.config.editor import write_settings
from trunkline.testing.scripted_model import ScriptedModel

from .target import ENV, SECRET, Sender, Target, target

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

KILLS = int(os.environ.get("WEBHOOK_KILLS", "4"))
"""How many random kills; whoever looks for what nobody thought of takes more."""


class Models:
    """A plugin with a model that says what it is told to say."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        return [ScriptedModel()]


@dataclass
class Installation:
    """A platform without channels in this process, the receiver, and the channels worker as a process."""

    home: Path
    target: Target
    channels: WorkerProcess
    asked: list[str] = field(default_factory=list)

    async def keep_running(self) -> None:
        """Start the channels worker again whenever it was killed."""
        while True:
            if not self.channels.alive:
                self.channels.launch()
                await self.channels.ready()
            await anyio.sleep(0.02)

    def ask(self, tasks: TaskGroup, word: str) -> None:
        """A program sends a message, until it is accepted."""
        self.asked.append(word)
        tasks.start_soon(lambda: Sender(self.home).say(f"say:{word}", thread="", id=f"id-{word}"))

    async def until_answered(self) -> None:
        """Wait until each message is answered. Nothing else was received, and repeated requests were equal."""
        with anyio.move_on_after(60 + len(self.asked)):
            await wait_until(lambda: len(self.target.events) >= len(self.asked))
        assert sorted(self.target.texts()) == sorted(self.asked), self.channels.text()[-3000:]
        assert {len(bodies) for bodies in self.target.bodies.values()} == {1}


@pytest.fixture(scope="module")
async def running(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    """The installation, which the tests of this module share."""
    home: Path = tmp_path_factory.mktemp("home")
    async with target() as one:
        settings = {
            "channels.webhook.webhooks.garden.secret.env": ENV,
            "channels.webhook.webhooks.garden.url": one.url,
            "channels.webhook.listen": "127.0.0.1:0",
            "channels.webhook.lease_seconds": 1,
            "channels.enabled": ["webhook"],
        }
        write_settings(home / "trunkline.toml", settings)
        config = {"runtime.provider_adapter": "scripted", "channels.enabled": ["webhook"]}
        everyone = ("gateway", "monitor", "tools", "memory")
        async with platform(home, plugins=[Models()], config=config, workers=everyone) as started:
            bus = started.instance.bus
            environ = {
                **os.environ, "TRUNKLINE_HOME": str(home), ENV: SECRET, "PYTHONUNBUFFERED": "1",
                "TRUNKLINE_BUS__URL": bus.url, "TRUNKLINE_BUS__USER": bus.user or "",
                "TRUNKLINE_BUS__PASSWORD": bus.password or "",
            }  # fmt: skip
            channels = WorkerProcess("channels", "channels", home / "channels.log", environ)
            try:
                yield Installation(home, one, channels)
            finally:
                channels.kill()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_kill_between_two_steps_loses_and_repeats_nothing(running: Installation, when: str) -> None:
    """The process ends before the receiver acts, or after it acted and before the process knows."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.keep_running)
        setattr(running.target, when, running.channels.kill)
        running.ask(tasks, f"step-{when}")
        await wait_until(lambda: getattr(running.target, when) is None)
        await running.until_answered()
        tasks.cancel_scope.cancel()


async def test_random_kills_lose_and_repeat_nothing(running: Installation) -> None:
    """Kills at any moment, while messages arrive and answers are sent."""
    chance = random.Random(15)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.keep_running)
        for number in range(KILLS):
            for each in range(3):
                running.ask(tasks, f"random-{number}-{each}")
            await Sender(running.home).url()
            await anyio.sleep(chance.random() * 0.4)
            running.channels.kill()
        await running.until_answered()
        tasks.cancel_scope.cancel()
