"""The assignment of partitions, as ``trunkline top`` reports it."""

from collections.abc import Callable

import anyio

from trunkline.runtime.overview import OverviewReader
from trunkline.testing.platform import PlatformClient


async def shares(talker: PlatformClient) -> dict[int, int]:
    """Return the number of partitions of each live monitor, by its process id; unassigned partitions count for 0."""
    seen = await OverviewReader(talker.bus).read()
    pids = {pin: beat.pid for beat in seen.workers for pin in beat.pins.values()}
    found = {beat.pid: 0 for beat in seen.workers if beat.kind == "monitor" and not beat.draining}
    for partition in seen.partitions:
        if partition.pin:
            holder = pids.get(partition.pin, 0)
            found[holder] = found.get(holder, 0) + 1
    return found


async def settled(
    talker: PlatformClient, due: Callable[[dict[int, int]], bool], seconds: float = 100.0
) -> float:
    """Wait until the shares are as they should be; returns how long that took. Raises AssertionError."""
    begin = anyio.current_time()
    found: dict[int, int] = {}
    with anyio.move_on_after(seconds):
        while True:
            found = await shares(talker)
            if due(found):
                return anyio.current_time() - begin
            await anyio.sleep(0.3)
    raise AssertionError(f"after {seconds:g} s the partitions are shared out as {found}")
