"""Whether another worker still lives, by the beats in the worker bucket. Decides nothing about calls."""

from collections.abc import Callable

import anyio

from trunkline.subjects import WORKER_BUCKET
from trunkline_bus import Bus, BusError

SETTLING = 4.0
"""Seconds after our own (re)connection in which a missing beat says nothing: the server may have lost its bucket."""


class Liveness:
    """Asks the worker bucket. ``own`` is the id of the worker that asks."""

    def __init__(self, bus: Bus, own: str) -> None:
        self._bucket = bus.kv(WORKER_BUCKET)
        self._own = own
        self._connected_at = anyio.current_time()
        self.close: Callable[[], None] = bus.on_reconnect(self._settle)
        """Stop watching for reconnections."""

    async def gone(self, worker: str) -> bool:
        """True only when the worker surely sends no beats any more. Its id names one life, so it stays gone."""
        if worker == self._own:
            return False
        try:
            beat = await self._bucket.get(worker)
        except BusError:
            return False
        return beat is None and anyio.current_time() - self._connected_at >= SETTLING

    async def _settle(self) -> None:
        self._connected_at = anyio.current_time()
