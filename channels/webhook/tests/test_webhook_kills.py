"""The channel as a process of its own, killed between each pair of steps and at random: nothing is lost or repeated."""

from collections.abc import AsyncIterator

import pytest

from trunkline.api.testing import ChannelInstallation, ScriptedFault, wait_until

from .installed_channel import WebhookService, installed
from .target import EVENT

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

KILLS = 4
"""Random kills. ``python -m benchmarks.chaos --channel webhook`` makes more."""

Running = ChannelInstallation[WebhookService]


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """The installation, which the tests of this module share."""
    async with installed(tmp_path_factory.mktemp("home")) as installation:
        yield installation


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_kill_between_two_steps_loses_and_repeats_nothing(running: Running, when: str) -> None:
    """The process ends before the receiver acts, or after it acted and before the process knows."""
    target = running.service.target
    await running.start()
    target.faults.append(ScriptedFault(EVENT, **{when: running.channels.kill}))  # type: ignore[arg-type]
    running.ask(f"step-{when}")
    await wait_until(lambda: not target.faults)
    await running.until_answered([f"step-{when}"])
    assert {len(bodies) for bodies in target.bodies.values()} == {1}, (
        "a request was repeated with another body"
    )


async def test_random_kills_lose_and_repeat_nothing(running: Running) -> None:
    """Kills at any moment, while messages arrive and answers are sent."""
    await running.kill_at_random(KILLS)
    assert {len(bodies) for bodies in running.service.target.bodies.values()} == {1}
