"""Platforms of real processes that a module's tests strike one after the other: four processes are slow to start."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from tests.support.processes import ProcessPlatform, WorkerProcess
from trunkline.contracts.workers.messages import WorkerKind

CREW: tuple[WorkerKind, ...] = ("gateway", "monitor", "tools", "memory")


@asynccontextmanager
async def manned(stage: ProcessPlatform) -> AsyncIterator[ProcessPlatform]:
    """The shared platform for one test: killed workers are restarted before it, and additional ones are ended after it.

    The logs are shown when it fails.
    """
    for kind in CREW:
        if not stage.processes[kind].alive:
            await stage.restart(kind)
    try:
        yield stage
    except BaseException:
        print(stage.logs()[-20_000:])  # noqa: T201 - pytest shows it with the failure
        raise
    finally:
        for name in [name for name in stage.processes if name not in CREW]:
            await _dismissed(stage.processes.pop(name))


async def _dismissed(guest: WorkerProcess) -> None:
    """In good order, so that what it holds is free at once; by force when it takes its time."""
    if guest.alive:
        guest.kill(signal.SIGTERM)
        with anyio.move_on_after(10, shield=True):
            await guest.gone()
    guest.kill()
