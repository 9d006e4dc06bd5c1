"""Writes the ledger entries of requests whose worker died before it recorded their end.

Every monitor looks for such requests. The first entry of a request that is stored wins, so it does not matter how many
look. An entry that the worker itself writes later replaces the estimate (see ``CostEntry``).
"""

import logging
from datetime import UTC, datetime, timedelta

import anyio

from trunkline.contracts.costs.estimate import interrupted_entry
from trunkline.contracts.costs.messages import RequestOpened
from trunkline.contracts.costs.subjects import OPENED_REQUEST
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline.runtime.cost_ledger import append_entry
from trunkline_bus import Bus, BusError, SequenceConflict, StoredMessage

log = logging.getLogger(__name__)

INTERVAL = 5.0
"""Seconds between two searches."""

FIRST_HEARTBEAT = timedelta(seconds=5)
"""A worker with no heartbeat is dead if its request is older than this. Until then its first heartbeat may be under
way."""


class CostRecovery:
    """Looks for the requests of dead workers, as the worker ``worker``."""

    def __init__(self, bus: Bus, worker: str) -> None:
        self._bus = bus
        self._worker = worker

    async def run(self) -> None:
        """Search periodically until cancelled. Failures are logged."""
        while True:
            try:
                await self.recover()
            except BusError as error:
                log.warning("requests of dead workers cannot be looked for now: %s", error)
            await anyio.sleep(INTERVAL)

    async def recover(self) -> None:
        """Write the entries of all requests whose worker is dead. Raises BusError."""
        opened = [stored async for stored in self._bus.history(OPENED_REQUEST)]
        if not opened:
            return
        # The heartbeats are read after the requests, so the worker of each request had begun before.
        alive = {self._worker, *await self._bus.kv(WORKER_BUCKET).keys()}
        now = datetime.now(UTC)
        for stored in opened:
            if stored.data.entry.worker not in alive and now - stored.time > FIRST_HEARTBEAT:
                await self._close(stored, now)

    async def _close(self, stored: StoredMessage[RequestOpened], now: datetime) -> None:
        entry = interrupted_entry(stored.data, now)
        try:
            await append_entry(self._bus, entry, only=True)
            log.warning(
                "request %s to %s was interrupted by a crash; its cost is estimated", entry.id, entry.adapter
            )
        except SequenceConflict:  # the worker, or another monitor, recorded the end
            pass
        await self._bus.delete(OPENED_REQUEST, stored.seq, missing_ok=True)
