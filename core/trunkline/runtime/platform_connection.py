"""The connection of a command to a platform: to a running platform, or to workers that the command starts and stops."""

import dataclasses
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import msgspec

from trunkline.config import Config
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.errors import Unavailable
from trunkline.home.paths import Home
from trunkline.home.run_file import AlreadyRunning, read_run_file, running_pid
from trunkline.runtime.connection_settings import bus_settings, with_own_inbox
from trunkline.runtime.worker_host import WorkerLoader
from trunkline_bus import Bus, BusSettings, connect

log = logging.getLogger(__name__)

STARTING_SECONDS = 15.0
"""Seconds to wait for an instance that holds the lock but has no run file yet."""


@asynccontextmanager
async def connect_to_platform(
    config: Config,
    load: WorkerLoader,
    *,
    name: str = "cli",
    kinds: tuple[WorkerKind, ...] = ("gateway", "monitor", "tools", "memory"),
    extra: tuple[object, ...] = (),
) -> AsyncIterator[Bus]:
    """Connect to the configured server, to the instance that runs on this home, or to workers of ``kinds``
    that run in this process during the context. ``load`` is ``trunkline.workers.load_worker``.

    Raises:
      BootError: the workers in this process could not start.
      ConnectionFailed: the configured server cannot be reached.
      Unavailable: an instance holds the lock and does not become ready.
    """
    async with AsyncExitStack() as stack:
        if config.settings.bus.url is not None:
            settings = bus_settings(config)
        else:
            settings = await _running_instance(config) or await _start_own_workers(
                stack, config, load, kinds, extra
            )
        settings = with_own_inbox(settings, "operator")
        yield await stack.enter_async_context(connect(msgspec.structs.replace(settings, name=name)))


async def _running_instance(config: Config) -> BusSettings | None:
    """Return the settings of the instance on this home; None when none runs. Waits for one that is
    starting."""
    home = Home.of(config)
    with anyio.move_on_after(STARTING_SECONDS):
        while (pid := running_pid(home)) is not None:
            run = read_run_file(home)
            if run is not None:
                return bus_settings(config, url=run.url, user=run.user or None, password=run.password or None)
            await anyio.sleep(0.05)
        return None
    raise Unavailable(
        f"A process (pid {pid}) holds {home.path} but does not become ready.",
        hint="Read its log, or stop it and try again.",
    )


async def _start_own_workers(
    stack: AsyncExitStack,
    config: Config,
    load: WorkerLoader,
    kinds: tuple[WorkerKind, ...],
    extra: tuple[object, ...],
) -> BusSettings:
    from trunkline.runtime.supervisor import running_platform
    from trunkline.runtime.watchdog import run_watchdog

    config = _with_free_ports(config)
    try:
        await stack.enter_async_context(run_watchdog(config))
        instance = await stack.enter_async_context(running_platform(config, load, kinds=kinds, extra=extra))
    except AlreadyRunning:  # another command started an instance first
        settings = await _running_instance(config)
        if settings is None:
            raise
        return settings
    return instance.bus


def _with_free_ports(config: Config) -> Config:
    """Return the configuration with free ports: a command must not fail because 8420 is in use."""
    gateway = msgspec.structs.replace(config.settings.gateway, port=0)
    monitor = msgspec.structs.replace(config.settings.monitor, engine_port=0)
    settings = msgspec.structs.replace(config.settings, gateway=gateway, monitor=monitor)
    return dataclasses.replace(config, settings=settings)
