"""A gateway and a memory worker on a real server, over real HTTP, with a monitor controlled by the test."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import httpx
import pytest

from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.testing.platform import Platform, platform
from trunkline_bus import Bus

from .fake_monitor import FakeMonitor


@dataclass
class Environment:
    """The fixture of a test: the platform, its bus, an HTTP client with the token, and the monitor."""

    platform: Platform
    bus: Bus
    http: httpx.AsyncClient
    monitor: FakeMonitor
    terminal: GatewayClient

    @property
    def url(self) -> str:
        return self.platform.url

    @property
    def token(self) -> str:
        return self.platform.token


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    """Wait until the condition holds."""
    with anyio.fail_after(seconds):
        while not await condition():  # noqa: ASYNC110  it is asked over the bus
            await anyio.sleep(0.01)


@asynccontextmanager
async def started_environment(
    *plugins: object, without: tuple[str, ...] = (), environ: Mapping[str, str] | None = None
) -> AsyncIterator[Environment]:
    """The platform with a monitor that echoes until a test gives it another script. Installed plugins may be left
    out."""
    config = {"plugins.disabled": without} if without else {}
    async with platform(
        workers=("gateway", "memory"), plugins=plugins, config=config, environ=environ
    ) as running:
        monitor = FakeMonitor(running.bus)
        headers = {"authorization": f"Bearer {running.token}"}
        async with (
            httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(monitor.run)
            yield Environment(running, running.bus, http, monitor, GatewayClient(running.bus, "terminal"))
            tasks.cancel_scope.cancel()


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Environment]:
    """One platform for the tests of a module that neither break it nor depend on messages of other tests."""
    async with started_environment() as env:
        yield env


@pytest.fixture
async def env(shared: Environment) -> AsyncIterator[Environment]:
    """The shared one, whose monitor has nothing to do and has seen nothing."""
    yield shared
    await shared.monitor.forget()


@pytest.fixture
async def garden_env(env: Environment) -> AsyncIterator[Environment]:
    """The shared one, for a test that makes the block ``garden``: nothing of it is left for the next test."""
    yield env
    empty = WriteMemory(
        path="blocks/garden/block.toml", content="", actor="test"
    )  # a broken one is not deleted
    await env.bus.call(MEMORY_WRITE, empty)
    await env.terminal.delete_block("garden")
    while [one for one in (await env.terminal.block_list(archived=True)).archived if one.name == "garden"]:
        await env.terminal.delete_block("garden", archived=True)


@pytest.fixture
async def own_env() -> AsyncIterator[Environment]:
    """One for this test alone."""
    async with started_environment() as env:
        yield env
