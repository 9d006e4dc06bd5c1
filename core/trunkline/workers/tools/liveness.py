"""Whether another tools worker still has a call: it is asked, and its beats are looked for. Decides nothing itself."""

from collections.abc import Callable

import anyio

from trunkline.contracts.tools.messages import CheckLiveness
from trunkline.contracts.tools.subjects import CHECK_LIVENESS
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline_bus import Bus, BusError, NoResponders

SETTLING = 4.0
"""Seconds after our own (re)connection in which an absence says nothing: the server may have been away, and others
come back to it later than we."""

ABSENCE = 0.6
"""Seconds for which nobody must listen on a worker's own subject before it is gone: a connection that was cut comes
back sooner."""


class Liveness:
    """Asks other workers and the worker bucket. ``own`` is the id of the worker that asks."""

    def __init__(self, bus: Bus, own: str) -> None:
        self._bus = bus
        self._bucket = bus.kv(WORKER_BUCKET)
        self._own = own
        self._connected_at = anyio.current_time()
        self.close: Callable[[], None] = bus.on_reconnect(self._settle)
        """Stop watching for reconnections."""

    async def has_left(self, worker: str, call: str) -> bool:
        """True only when nothing more is to come of the call from that worker: it says so, or it surely does not live
        any more. Its id names one life, so it stays gone.

        The server knows at once that a dead process listens no more. Of one that listens and does not answer (it
        stands still, or its host is cut off) the beats tell, some seconds later; one that drains has left off
        listening and says so in its beat.
        """
        if worker == self._own:
            return False
        absent = False
        try:
            alive = await self._bus.call(
                CHECK_LIVENESS, CheckLiveness(call=call), timeout=ABSENCE, worker=worker
            )
            return not alive.at_work
        except NoResponders:
            absent = True
        except BusError:
            pass  # the beats will tell
        return await self._gone(worker, absent) and self._settled

    async def _gone(self, worker: str, absent: bool) -> bool:
        try:
            beat = await self._bucket.get(worker)
        except BusError:
            return False
        return beat is None or (absent and beat.value is not None and not beat.value.draining)

    @property
    def _settled(self) -> bool:
        return anyio.current_time() - self._connected_at >= SETTLING

    async def _settle(self) -> None:
        self._connected_at = anyio.current_time()
