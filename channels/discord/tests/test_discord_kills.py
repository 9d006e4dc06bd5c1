"""The channel as a process of its own, killed between each pair of steps and at random: nothing is lost or repeated."""

from collections.abc import AsyncIterator

import pytest

from trunkline.api.testing import ChannelInstallation, ScriptedFault, wait_until

from .discord_server import DiscordServer
from .installed_channel import installed

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

KILLS = 4
"""Random kills. ``python -m benchmarks.chaos --channel discord`` makes more."""

Running = ChannelInstallation[DiscordServer]


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """The installation, which the tests of this module share."""
    async with installed(tmp_path_factory.mktemp("home")) as installation:
        yield installation


STARTING = ("GET /gateway/bot", "POST /users/@me/channels", "GET /channels/{channel}/messages")
"""Requests of a channel that starts."""

RUNNING = ("POST /channels/{channel}/messages", "PATCH /channels/{channel}/messages/{message}")

STEPS = [(route, when) for route in (*STARTING, *RUNNING) for when in ("before", "after")]


@pytest.mark.parametrize(("route", "when"), STEPS)
async def test_a_kill_between_two_steps_loses_and_repeats_nothing(
    running: Running, route: str, when: str
) -> None:
    """The process ends before Discord acts, or after it acted and before the process knows."""
    installation, server = running, running.service
    word = f"step{STEPS.index((route, when))}"
    if route in STARTING:
        installation.channels.kill()
    else:
        await installation.start()
    server.faults.append(ScriptedFault(route, **{when: installation.channels.kill}))  # type: ignore[arg-type]
    installation.ask(word)
    if not installation.channels.alive:
        installation.channels.launch()
    await wait_until(lambda: not server.faults)
    await installation.until_answered([word])


async def test_random_kills_lose_and_repeat_nothing(running: Running) -> None:
    """Kills at any moment, in the middle of growing answers, while messages arrive."""
    installation, server = running, running.service
    words = await installation.kill_at_random(KILLS)
    server.repeat()
    installation.ask("last")
    await installation.until_answered([*words, "last"])
