"""The overview service: workers, partitions, queues, streams and recent failures of the whole platform."""

import anyio

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.home.kill_switch import KillSwitch
from trunkline.runtime.overview import OverviewReader, PlatformOverview
from trunkline.workers.gateway.sender import Sender
from trunkline_bus import Bus


class OverviewService:
    """Reads the state of the platform for the owner, with a token for all blocks: the numbers are totals of them.

    Concurrent requests wait for each other, because the reader keeps the facts that it has read.
    """

    def __init__(self, bus: Bus, kill_switch: KillSwitch) -> None:
        self._reader = OverviewReader(bus, kill_switch=kill_switch)
        self._order = anyio.Lock()

    async def read(self, sender: Sender) -> PlatformOverview:
        """Return the current state. Refused with ``forbidden`` for anybody else. Raises BusError."""
        sender.require_administrator("sees the state of the platform", TokenScope.OPERATE)
        async with self._order:
            return await self._reader.read()
