"""The channel as a process of its own, killed between each pair of steps and at random: nothing is lost or repeated."""

from collections.abc import AsyncIterator

import pytest

from trunkline.api.testing import ChannelInstallation, ScriptedFault, wait_until

from .homeserver import Homeserver
from .installed_channel import installed

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

KILLS = 4
"""Random kills. ``python -m benchmarks.chaos --channel matrix`` makes more."""

Running = ChannelInstallation[Homeserver]


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """The installation, which the tests of this module share."""
    async with installed(tmp_path_factory.mktemp("home")) as installation:
        yield installation


STARTING = ("whoami", "sync")
"""Calls of a channel that starts."""

RUNNING = ("send", "edit")

STEPS = [(name, when) for name in (*STARTING, *RUNNING) for when in ("before", "after")]


@pytest.mark.parametrize(("name", "when"), STEPS)
async def test_a_kill_between_two_steps_loses_and_repeats_nothing(
    running: Running, name: str, when: str
) -> None:
    """The process ends before the homeserver acts, or after it acted and before the process knows."""
    installation, server = running, running.service
    word = f"step{STEPS.index((name, when))}"
    if name in STARTING:
        installation.channels.kill()
    else:
        await installation.start()
    server.faults.append(ScriptedFault(name, **{when: installation.channels.kill}))  # type: ignore[arg-type]
    installation.ask(word)
    if not installation.channels.alive:
        installation.channels.launch()
    await wait_until(lambda: not server.faults)
    await installation.until_answered([word])


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["upload", "file"])
async def test_a_kill_while_a_file_is_sent_sends_it_once(running: Running, name: str, when: str) -> None:
    """The file of an answer arrives once, whether the process ends before or after the homeserver has it."""
    installation, server = running, running.service
    await installation.start()
    workspace = installation.platform.home.workspace("main")
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "plan.png").write_bytes(b"\x89PNG a picture")
    word, before = f"{name}-{when}", server.seen().count("plan.png")
    server.faults.append(ScriptedFault(name, **{when: installation.channels.kill}))  # type: ignore[arg-type]
    server.say(f'call:send_file {{"path": "plan.png"}} ;; say:{word}. ;; slow:10:30')
    installation.asked += 2  # the text and the file
    await wait_until(lambda: not server.faults)
    await installation.start()
    await wait_until(lambda: server.seen().count("plan.png") > before)
    await installation.until_answered([word])


async def test_random_kills_lose_and_repeat_nothing(running: Running) -> None:
    """Kills at any moment, in the middle of growing answers, while messages arrive."""
    installation, server = running, running.service
    words = await installation.kill_at_random(KILLS)
    installation.ask("last")
    await installation.until_answered([*words, "last"])
    assert server.problems == []
