"""The connection of commands to a platform."""

from pathlib import Path

import anyio
import pytest
from workers_for_tests import RecordedWorkers, config_at, until

from trunkline.home.paths import Home
from trunkline.home.run_file import instance_lock, read_run_file
from trunkline.runtime.platform_connection import connect_to_platform
from trunkline.runtime.supervisor import running_platform
from trunkline_bus import EmbeddedServer

pytestmark = pytest.mark.anyio


async def test_a_command_uses_the_instance_that_runs(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """No second server and no second worker are started."""
    others = RecordedWorkers()
    async with (
        running_platform(config_at(tmp_path), recorded_workers.load, kinds=("tools",)) as instance,
        connect_to_platform(config_at(tmp_path), others.load) as bus,
    ):
        assert bus.link.settings.url == instance.bus.url
    assert others.events == []


async def test_a_command_without_a_platform_starts_its_own_workers(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """Without an instance the workers run in the command's process and end with it."""
    async with connect_to_platform(config_at(tmp_path), recorded_workers.load, kinds=("gateway", "memory")):
        assert recorded_workers.did("open") == ["memory", "gateway"]
        gateway = recorded_workers.types["gateway"].alive[0].context.config.settings.gateway
        assert gateway.port == 0, "a command must not fail because the port is taken"
    assert recorded_workers.did("close") == ["gateway", "memory"]


async def test_two_concurrent_commands_use_one_platform(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """The quicker one starts it, the other one waits until it can be reached."""
    others, together = RecordedWorkers(), anyio.Event()

    async def first() -> None:
        async with connect_to_platform(config_at(tmp_path), recorded_workers.load, kinds=("memory",)):
            await together.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await until(lambda: bool(recorded_workers.did("open")))
        async with connect_to_platform(config_at(tmp_path), others.load, kinds=("memory",)):
            assert others.events == []
        together.set()


async def test_a_command_waits_for_an_instance_that_is_still_starting(
    tmp_path: Path, recorded_workers: RecordedWorkers
) -> None:
    """A held lock without a run file is an instance that is starting; when it fails, the command continues alone."""
    home = Home.at(tmp_path)
    home.prepare()
    opened = anyio.Event()

    async def command() -> None:
        async with connect_to_platform(config_at(tmp_path), recorded_workers.load, kinds=("memory",)):
            opened.set()

    async with anyio.create_task_group() as tasks:
        with instance_lock(home):
            tasks.start_soon(command)
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            assert not opened.is_set()
        with anyio.fail_after(60):
            await opened.wait()


async def test_a_configured_server_is_used_first(tmp_path: Path, nats_server: EmbeddedServer) -> None:
    """bus.url is used as it is, and nothing is started."""
    none = RecordedWorkers()
    url = nats_server.url.replace("//", f"//{nats_server.user}:{nats_server.password}@")
    async with connect_to_platform(config_at(tmp_path, bus__url=url), none.load) as bus:
        assert bus.connected
    assert none.events == [] and read_run_file(Home.at(tmp_path)) is None
