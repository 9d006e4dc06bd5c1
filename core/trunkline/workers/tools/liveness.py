"""Liveness: whether another tools worker still has a call, by a request to that worker and by its heartbeat. Decides
nothing about the call.
"""

from collections.abc import Callable

import anyio

from trunkline.contracts.tools.messages import CheckLiveness
from trunkline.contracts.tools.subjects import CHECK_LIVENESS
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline_bus import Bus, BusError, NoResponders

SETTLE_SECONDS = 4.0
"""Seconds after this worker's (re)connection in which an absence is ignored: the server may have been away,
and other workers reconnect later."""

ABSENCE_SECONDS = 0.6
"""Seconds without a listener on a worker's own subject after which it counts as gone. A dropped connection
returns sooner."""


class Liveness:
    """Asks other workers and reads the worker bucket. ``own`` is the id of the asking worker."""

    def __init__(self, bus: Bus, own: str) -> None:
        self._bus = bus
        self._bucket = bus.kv(WORKER_BUCKET)
        self._own = own
        self._connected_at = anyio.current_time()
        self.close: Callable[[], None] = bus.on_reconnect(self._settle)
        """Stop watching for reconnections."""

    async def has_left(self, worker: str, call: str) -> bool:
        """Report whether the worker will certainly do nothing more for the call: the worker says so, or it has ended.
        A restarted worker has a new id.

        The server reports immediately that a dead process has no subscription. If a worker is subscribed and does not
        answer, because it is suspended or its host is disconnected, its heartbeat expires some seconds later. A
        draining worker is not subscribed, and its heartbeat says that it drains.
        """
        if worker == self._own:
            return False
        absent = False
        try:
            alive = await self._bus.call(
                CHECK_LIVENESS, CheckLiveness(call=call), timeout=ABSENCE_SECONDS, worker=worker
            )
            return not alive.at_work
        except NoResponders:
            absent = True
        except BusError:
            pass  # the heartbeat decides
        return await self._gone(worker, absent) and self._settled

    async def _gone(self, worker: str, absent: bool) -> bool:
        try:
            heartbeat = await self._bucket.get(worker)
        except BusError:
            return False
        return heartbeat is None or (absent and heartbeat.value is not None and not heartbeat.value.draining)

    @property
    def _settled(self) -> bool:
        return anyio.current_time() - self._connected_at >= SETTLE_SECONDS

    async def _settle(self) -> None:
        self._connected_at = anyio.current_time()
