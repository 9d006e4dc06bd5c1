"""WakeUps: when the schedules of each block are due next, from the states of schedules on the bus."""

import logging
from datetime import datetime

import anyio

from trunkline.contracts.schedules.subjects import SCHEDULE_BUCKET
from trunkline_bus import Bus, BusError

log = logging.getLogger(__name__)

RETRY_SECONDS = 2.0


class WakeUps:
    """Follows the states of schedules while ``run`` runs. Until it has read them, no block has a next due time."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._due: dict[str, tuple[str, datetime]] = {}

    def next_of(self, block: str) -> datetime | None:
        """Return the next due time of a block's schedules; None if it has none."""
        return min((due for of, due in self._due.values() if of == block), default=None)

    async def run(self) -> None:
        """Follow the states until cancelled."""
        while True:
            try:
                async with self._bus.kv(SCHEDULE_BUCKET).watch() as entries:
                    async for entry in entries:
                        state = entry.value
                        if state is None or state.next_due is None:
                            self._due.pop(entry.key, None)
                        else:
                            self._due[entry.key] = (state.block, state.next_due)
            except BusError as error:
                log.info("the next due times of schedules cannot be read: %s", error)
            await anyio.sleep(RETRY_SECONDS)
