"""The panic handler of a worker. It watches the kill switch in the home, and the bus for panic requests from other
hosts."""

import logging
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread

from trunkline.contracts.workers.messages import WorkerKind
from trunkline.contracts.workers.panic import Panic, PanicRelease, PanicStopped
from trunkline.contracts.workers.subjects import PANIC, PANIC_RELEASE, PANIC_STOPPED
from trunkline.errors import StorageError
from trunkline.home.kill_switch import KillSwitch
from trunkline_bus import Bus, ReceivedMessage

log = logging.getLogger(__name__)

STOP_SECONDS = 20.0
"""Seconds after which a worker that has not stopped stays silent, so that it is reported as silent."""


class PanicHandler:
    """Stops the work of a worker whenever the kill switch is engaged. ``stop`` ends everything that the worker runs."""

    def __init__(self, kill_switch: KillSwitch, stop: Callable[[], Awaitable[None]]) -> None:
        self._kill_switch = kill_switch
        self._stop = stop
        self._stopped = anyio.Event()

    async def watch(self) -> None:
        """Call ``stop`` when the kill switch is engaged, at once if it already is. Runs until cancelled."""
        while True:
            await self._kill_switch.wait_until(True)
            log.warning("panic: everything is stopped until it is released")
            await self._stop()
            self._stopped.set()
            await self._kill_switch.wait_until(False)
            self._stopped = anyio.Event()
            log.warning("panic was released")

    async def listen(self, bus: Bus, worker: str, kind: WorkerKind) -> None:
        """Engage and release this home's kill switch as requested on the bus, and report on the bus when everything has
        stopped. If the switch cannot be engaged, stop everything nevertheless."""

        async def engage(message: ReceivedMessage[Panic]) -> None:
            if await self._engage(message.data.by):
                await bus.publish(PANIC_STOPPED, PanicStopped(worker=worker, kind=kind))

        async def release(message: ReceivedMessage[PanicRelease]) -> None:
            try:
                await anyio.to_thread.run_sync(self._kill_switch.release)
            except StorageError as error:
                log.error("%s", error)

        await bus.subscribe(PANIC, engage)
        await bus.subscribe(PANIC_RELEASE, release)

    async def _engage(self, by: str) -> bool:
        """Engage the kill switch; return whether everything has stopped."""
        try:
            await anyio.to_thread.run_sync(self._kill_switch.engage, by)
        except StorageError as error:
            log.error("%s", error)
            await self._stop()
            return True
        return await self._has_stopped()

    async def _has_stopped(self) -> bool:
        with anyio.move_on_after(STOP_SECONDS):
            await self._stopped.wait()
        return self._stopped.is_set()
