"""Creates the streams and maintains them, for workers whose credentials do not permit it."""

from contextlib import AsyncExitStack

import anyio
import msgspec
from anyio.abc import TaskStatus

from trunkline.runtime.startup_retry import retry_until_available
from trunkline.runtime.worker_host import WorkerHostSettings, maintain_configured_topology
from trunkline_bus import connect


async def provision_streams(
    settings: WorkerHostSettings,
    stop: anyio.Event,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Apply streams, consumers and buckets to the server, now and after each reconnect, until ``stop`` is
    set.

    ``task_status`` is told when they exist.

    Raises:
      BusError: they could not be created.
    """
    named = msgspec.structs.replace(settings.bus, name="streams")
    patience = settings.config.settings.bus.connect_timeout
    async with AsyncExitStack() as stack:
        bus = await retry_until_available(lambda: stack.enter_async_context(connect(named)), patience, stop)
        forget = await retry_until_available(
            lambda: maintain_configured_topology(bus, settings.config), patience, stop
        )
        task_status.started()
        await stop.wait()
        forget()
