"""The channel as a process of its own, killed between each pair of steps and at random: nothing is lost or repeated."""

from collections.abc import AsyncIterator

import pytest

from trunkline.api.testing import ChannelInstallation, wait_until

from .installed_channel import installed
from .mail_store import Fault, MailStore

pytestmark = [pytest.mark.anyio, pytest.mark.kill, pytest.mark.timeout(600)]

KILLS = 3
"""Random kills. ``python -m benchmarks.chaos --channel email`` makes more."""


@pytest.fixture(scope="module")
async def running(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ChannelInstallation[MailStore]]:
    """The installation, which the tests of this module share."""
    async with installed(tmp_path_factory.mktemp("home")) as installation:
        yield installation


STEPS = [
    (command, when)
    for command in ("FETCH", "STORE", "MAIL", "RCPT", "DATA", "MOVE")
    for when in ("before", "after")
    if (command, when) not in (("MAIL", "after"), ("RCPT", "after"))  # they have no effect of their own
]


@pytest.mark.parametrize(("command", "when"), STEPS)
async def test_a_kill_between_two_steps_loses_and_repeats_nothing(
    running: ChannelInstallation[MailStore], command: str, when: str
) -> None:
    """The process ends before a server acts, or after it acted and before the process knows."""
    word = f"{command}-{when}"
    await running.start()
    fault = Fault(command, **{when: running.channels.kill})  # type: ignore[arg-type]
    running.service.faults.append(fault)
    running.ask(word)
    await wait_until(lambda: not running.service.faults)
    await running.until_answered([word])


async def test_random_kills_lose_and_repeat_nothing(running: ChannelInstallation[MailStore]) -> None:
    """Kills at any moment, while mails arrive and answers are sent."""
    await running.kill_at_random(KILLS)
