"""The channel as a process of its own, killed between each pair of steps and at random: nothing is lost or repeated."""

import os
import random
import sys
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

from .mail_servers import mail_servers
from .mail_store import PASSWORD, Fault, MailStore

pytestmark = [pytest.mark.anyio, pytest.mark.kill, pytest.mark.timeout(600)]

KILLS = int(os.environ.get("EMAIL_KILLS", "3"))
"""How many random kills; whoever looks for what nobody thought of takes more."""


class Models:
    """A plugin with a model that says what it is told to say."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        return [ScriptedModel()]


@dataclass
class Installation:
    """A platform without channels in this process, the mail servers, and the channels worker as a process."""

    platform: Platform
    store: MailStore
    channels: WorkerProcess
    asked: int = 0

    async def start(self) -> None:
        """Start the channels worker again, if it does not run."""
        if not self.channels.alive:
            self.channels.launch()
            await self.channels.ready()

    async def until_answered(self, words: list[str]) -> None:
        """Wait until every word is answered. Each is answered once, and nothing else is sent."""
        with anyio.move_on_after(240):  # a machine that is busy with other things stores slowly
            while not all(word in self.store.seen() for word in words) or self.store.untaken():
                await self.start()
                await anyio.sleep(0.05)
        got = [
            (text, mail["Message-ID"])
            for text, mail in zip(self.store.seen(), self.store.mails(), strict=True)
        ]
        wrong = {
            word: [id for text, id in got if text == word]
            for word in words
            if self.store.seen().count(word) != 1
        }
        assert wrong == {}, self.channels.text()[-3000:]
        assert len(self.store.seen()) == self.asked, self.store.seen()
        assert self.store.untaken() == []

    def ask(self, word: str) -> None:
        """The owner sends a mail."""
        self.asked += 1
        self.store.say(f"say:{word}")


@pytest.fixture(scope="module")
async def running(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    """The installation, which the tests of this module share."""
    home: Path = tmp_path_factory.mktemp("home")
    async with mail_servers() as servers:
        section = servers.section(lease_seconds=1, settle_seconds=1)
        settings = {f"channels.email.{key}": value for key, value in section.items()}
        settings["channels.email.owners"] = list(section["owners"])
        write_settings(home / "trunkline.toml", {**settings, "channels.enabled": ["email"]})
        everyone = ("gateway", "monitor", "tools", "memory")
        config = {"runtime.provider_adapter": "scripted", "channels.enabled": ["email"]}
        async with platform(home, plugins=[Models()], config=config, workers=everyone) as started:
            bus = started.instance.bus
            environ = {
                **os.environ, "TRUNKLINE_HOME": str(home), "EMAIL_PASSWORD": PASSWORD, "PYTHONUNBUFFERED": "1",
                "TRUNKLINE_BUS__URL": bus.url, "TRUNKLINE_BUS__USER": bus.user or "",
                "TRUNKLINE_BUS__PASSWORD": bus.password or "",
            }  # fmt: skip
            channels = WorkerProcess("channels", "channels", home / "channels.log", environ)
            try:
                yield Installation(started, servers.store, channels)
            finally:
                channels.kill()


STEPS = [
    (command, when)
    for command in ("FETCH", "STORE", "MAIL", "RCPT", "DATA", "MOVE")
    for when in ("before", "after")
    if (command, when) not in (("MAIL", "after"), ("RCPT", "after"))  # they have no effect of their own
]


@pytest.mark.parametrize(("command", "when"), STEPS)
async def test_a_kill_between_two_steps_loses_and_repeats_nothing(
    running: Installation, command: str, when: str
) -> None:
    """The process ends before a server acts, or after it acted and before the process knows."""
    word = f"{command}-{when}"
    await running.start()
    fault = Fault(command, **{when: running.channels.kill})  # type: ignore[arg-type]
    running.store.faults.append(fault)
    running.ask(word)
    await wait_until(lambda: not running.store.faults)
    await running.until_answered([word])


async def test_random_kills_lose_and_repeat_nothing(running: Installation) -> None:
    """Kills at any moment, while mails arrive and answers are sent."""
    chance = random.Random(15)
    words: list[str] = []
    for number in range(KILLS):
        await running.start()
        words += [f"random-{number}-{each}" for each in range(3)]
        for word in words[-3:]:
            running.ask(word)
        await anyio.sleep(chance.random() * 0.8)
        running.channels.kill()
    await running.until_answered(words)
    sys.stdout.write(f"{KILLS} random kills, {len(words)} mails: 0 lost, 0 repeated\n")
