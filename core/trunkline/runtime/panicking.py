"""How a worker heeds panic: by the latch in its home, which it looks at, and by the bus, which tells other machines."""

import logging
from collections.abc import Awaitable, Callable

import anyio.to_thread

from trunkline.errors import StorageError
from trunkline.latch import Latch
from trunkline.messages.panic import Panic
from trunkline.subjects import PANIC
from trunkline_bus import Bus, Received

log = logging.getLogger(__name__)


async def heed(latch: Latch, stop: Callable[[], Awaitable[None]]) -> None:
    """Call ``stop`` whenever the latch is pulled; at once when it holds already."""
    while True:
        await latch.until(True)
        log.warning("panic: everything is stopped until it is released")
        await stop()
        await latch.until(False)
        log.warning("panic was released")


async def listen(bus: Bus, latch: Latch, stop: Callable[[], Awaitable[None]]) -> None:
    """Pull and release the latch of this home as is said on the bus. One that cannot be pulled: stop all the same."""

    async def told(message: Received[Panic]) -> None:
        try:
            await anyio.to_thread.run_sync(_follow, latch, message.data)
        except StorageError as error:
            log.error("%s", error)
            if message.data.on:
                await stop()

    await bus.subscribe(PANIC, told)


def _follow(latch: Latch, said: Panic) -> None:
    if said.on:
        latch.pull(said.by)
    else:
        latch.release()
