"""The panic handler of a worker. It watches the kill switch in the home, and the bus, which tells other machines."""

import logging
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread

from trunkline.contracts.workers.messages import WorkerKind
from trunkline.contracts.workers.panic import Panic, PanicStopped
from trunkline.contracts.workers.subjects import PANIC, PANIC_STOPPED
from trunkline.errors import StorageError
from trunkline.home.kill_switch import KillSwitch
from trunkline_bus import Bus, ReceivedMessage

log = logging.getLogger(__name__)

STOP_SECONDS = 20.0
"""After how long a worker that still has not stopped says nothing: who waits for it is told that it is silent."""


class PanicHandler:
    """Has a worker stop whenever the latch is pulled. ``stop`` ends all that it has under way."""

    def __init__(self, latch: KillSwitch, stop: Callable[[], Awaitable[None]]) -> None:
        self._latch = latch
        self._stop = stop
        self._stopped = anyio.Event()

    async def watch(self) -> None:
        """Stop when the latch is pulled; at once when it holds already. Until cancelled."""
        while True:
            await self._latch.wait_until(True)
            log.warning("panic: everything is stopped until it is released")
            await self._stop()
            self._stopped.set()
            await self._latch.wait_until(False)
            self._stopped = anyio.Event()
            log.warning("panic was released")

    async def listen(self, bus: Bus, worker: str, kind: WorkerKind) -> None:
        """Pull and release the latch of this home as is said on the bus, and say there when everything is stopped. One
        that cannot be pulled: stop all the same."""

        async def told(message: ReceivedMessage[Panic]) -> None:
            if await self._apply(message.data):
                await bus.publish(PANIC_STOPPED, PanicStopped(worker=worker, kind=kind))

        await bus.subscribe(PANIC, told)

    async def _apply(self, said: Panic) -> bool:
        """Report whether everything was to be stopped, and is."""
        try:
            await anyio.to_thread.run_sync(_set_latch, self._latch, said)
        except StorageError as error:
            log.error("%s", error)
            if said.on:
                await self._stop()
            return said.on
        return said.on and await self._has_stopped()

    async def _has_stopped(self) -> bool:
        with anyio.move_on_after(STOP_SECONDS):
            await self._stopped.wait()
        return self._stopped.is_set()


def _set_latch(latch: KillSwitch, said: Panic) -> None:
    if said.on:
        latch.engage(said.by)
    else:
        latch.release()
