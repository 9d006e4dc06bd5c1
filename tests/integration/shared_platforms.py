"""Platforms of real processes that a module's tests strike one after the other: four processes are slow to start."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from tests.support.processes import ProcessPlatform
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.testing.worker_process import WorkerProcess

ALL_WORKERS: tuple[WorkerKind, ...] = ("gateway", "monitor", "tools", "memory")


@asynccontextmanager
async def shared_platform(module_platform: ProcessPlatform) -> AsyncIterator[ProcessPlatform]:
    """The shared platform for one test: killed workers are restarted before it, and additional ones are ended after it.

    The logs are shown when it fails.
    """
    for kind in ALL_WORKERS:
        if not module_platform.processes[kind].alive:
            await module_platform.restart(kind)
    try:
        yield module_platform
    except BaseException:
        print(module_platform.logs()[-20_000:])  # noqa: T201 - pytest shows it with the failure
        raise
    finally:
        for name in [name for name in module_platform.processes if name not in ALL_WORKERS]:
            await _drained(module_platform.processes.pop(name))


async def _drained(guest: WorkerProcess) -> None:
    """Drain the worker, so that its resources are free at once; kill it if that takes too long."""
    if guest.alive:
        guest.kill(signal.SIGTERM)
        with anyio.move_on_after(10, shield=True):
            await guest.gone()
    guest.kill()
