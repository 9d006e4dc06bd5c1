"""WakeUps: when the schedules of each block are due next, from the states of schedules on the bus."""

import logging
from datetime import datetime

import anyio

from trunkline.contracts.schedules.subjects import SCHEDULE_BUCKET
from trunkline_bus import Bus, BusError

log = logging.getLogger(__name__)

READ_SECONDS = 10.0
"""Seconds between two readings of the states."""


class WakeUps:
    """Knows the states of schedules, some seconds late, while ``run`` runs. Until it has read them, no block has a next
    due time.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._due: dict[str, tuple[str, datetime]] = {}

    def next_of(self, block: str) -> datetime | None:
        """Return the next due time of a block's schedules; None if it has none."""
        return min((due for of, due in self._due.values() if of == block), default=None)

    async def run(self) -> None:
        """Read the states again and again until cancelled. A gateway's credentials permit no consumer that would follow
        them.
        """
        while True:
            try:
                entries = await self._bus.kv(SCHEDULE_BUCKET).entries()
                states = [(entry.key, entry.value) for entry in entries if entry.value is not None]
                self._due = {
                    key: (one.block, one.next_due) for key, one in states if one.next_due is not None
                }
            except BusError as error:
                log.info("the next due times of schedules cannot be read: %s", error)
            await anyio.sleep(READ_SECONDS)
