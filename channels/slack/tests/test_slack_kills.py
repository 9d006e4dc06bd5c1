"""The channel as a process of its own, killed between each pair of steps and at random: nothing is lost or repeated."""

from collections.abc import AsyncIterator

import pytest

from trunkline.api.testing import ChannelInstallation, ScriptedFault, wait_until

from .installed_channel import installed
from .slack_server import SlackServer

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

KILLS = 4
"""Random kills. ``python -m benchmarks.chaos --channel slack`` makes more."""

Running = ChannelInstallation[SlackServer]


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """The installation, which the tests of this module share."""
    async with installed(tmp_path_factory.mktemp("home")) as installation:
        yield installation


STARTING = ("apps.connections.open", "users.conversations", "conversations.history")
"""Calls of a channel that starts."""

RUNNING = ("chat.postMessage", "chat.update")

STEPS = [(method, when) for method in (*STARTING, *RUNNING) for when in ("before", "after")]


@pytest.mark.parametrize(("method", "when"), STEPS)
async def test_a_kill_between_two_steps_loses_and_repeats_nothing(
    running: Running, method: str, when: str
) -> None:
    """The process ends before Slack acts, or after it acted and before the process knows."""
    installation, server = running, running.service
    word = f"step{STEPS.index((method, when))}"
    if method in STARTING:
        installation.channels.kill()
    else:
        await installation.start()
    server.faults.append(ScriptedFault(method, **{when: installation.channels.kill}))  # type: ignore[arg-type]
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
