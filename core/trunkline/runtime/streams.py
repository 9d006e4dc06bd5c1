"""Makes the streams and keeps them, for workers whose credentials do not let them. No worker's own work is in here."""

import anyio
import msgspec
from anyio.abc import TaskStatus

from trunkline.runtime.host import HostSettings, keep_topology
from trunkline_bus import connect


async def keep_streams(
    settings: HostSettings, stop: anyio.Event, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Bring streams, consumers and buckets to the server, now and after each reconnect, until ``stop`` is set.

    ``task_status`` is told when they are there.

    Raises:
        BusError: they could not be made.
    """
    async with connect(msgspec.structs.replace(settings.bus, name="streams")) as bus:
        forget = await keep_topology(bus, settings.config)
        task_status.started()
        await stop.wait()
        forget()
