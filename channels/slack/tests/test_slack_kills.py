"""The channel as a process of its own, killed between each pair of steps and at random: nothing is lost or repeated."""

from collections.abc import AsyncIterator

import pytest

from tests.support.chat_installation import ChatInstallation, chat_installation, random_kills
from trunkline.api.testing import wait_until

from .slack_server import APP_TOKEN, BOT_TOKEN, OWNER, Fault, SlackServer, slack_server

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

Running = tuple[ChatInstallation, SlackServer]


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """The installation, which the tests of this module share. The first start is over: from then on nothing is lost."""
    async with slack_server() as server:
        section = {"owners": [OWNER], "api_url": server.url, "edit_seconds": 0.05, "lease_seconds": 1}
        home, environ = (
            tmp_path_factory.mktemp("home"),
            {"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_APP_TOKEN": APP_TOKEN},
        )
        async with chat_installation(home, "slack", section, server, environ) as installation:
            await installation.start()
            await wait_until(lambda: server.connected)
            yield installation, server


STARTING = ("apps.connections.open", "users.conversations", "conversations.history")
"""Calls of a channel that starts."""

RUNNING = ("chat.postMessage", "chat.update")

STEPS = [(method, when) for method in (*STARTING, *RUNNING) for when in ("before", "after")]


@pytest.mark.parametrize(("method", "when"), STEPS)
async def test_a_kill_between_two_steps_loses_and_repeats_nothing(
    running: Running, method: str, when: str
) -> None:
    """The process ends before Slack acts, or after it acted and before the process knows."""
    installation, server = running
    word = f"step{STEPS.index((method, when))}"
    if method in STARTING:
        installation.channels.kill()
    else:
        await installation.start()
    server.faults.append(Fault(method, **{when: installation.channels.kill}))  # type: ignore[arg-type]
    installation.ask(word)
    if not installation.channels.alive:
        installation.channels.launch()
    await wait_until(lambda: not server.faults)
    await installation.until_answered([word])


async def test_random_kills_lose_and_repeat_nothing(running: Running) -> None:
    """Kills at any moment, in the middle of growing answers, while messages arrive."""
    installation, server = running
    words = await installation.kill_at_random(random_kills("slack"))
    server.repeat()
    installation.ask("last")
    await installation.until_answered([*words, "last"])
