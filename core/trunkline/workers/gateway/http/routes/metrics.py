"""``GET /metrics``: metrics for Prometheus. The path needs a credential unless ``gateway.metrics`` is ``open``.

Counting starts with the first request. Each request reads the journal entries since the last one.
"""

from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.runtime.http.auth_middleware import IDENTITY
from trunkline.telemetry.turn_metrics import TurnMetrics
from trunkline.workers.gateway.http.app_state import app_state_of, sender_of
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.platform_metrics import measure_platform
from trunkline_bus import Bus, DecodeError
from trunkline_bus.streams.admin import raw_history

if TYPE_CHECKING:
    from trunkline.telemetry.prometheus import Exposition

PATH = "/metrics"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class JournalMetrics:
    """Reads the journal and counts its turns. Methods raise BusError when the bus does not answer."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._order = anyio.Lock()
        self._measures: tuple[Exposition, TurnMetrics] | None = None
        self._last_seq = 0

    async def text(self) -> str:
        """Return the counted metrics and the current state of the platform."""
        async with self._order:
            if self._measures is None:
                self._last_seq = await self._find_last()
                exposition = await anyio.to_thread.run_sync(_load_exposition)
                self._measures = exposition, TurnMetrics(exposition)
            exposition, tally = self._measures
            await self._read(tally)
            await measure_platform(self._bus, exposition)
            return exposition.text()

    async def _find_last(self) -> int:
        try:
            last = await self._bus.last(JOURNAL)
            return last.seq if last is not None else 0
        except DecodeError:  # a later version wrote the last entry
            return max([record.seq async for record in raw_history(self._bus, JOURNAL)], default=0)

    async def _read(self, tally: TurnMetrics) -> None:
        async for record in raw_history(self._bus, JOURNAL, after=self._last_seq):
            try:
                envelope = await self._bus.inbound.open(JOURNAL.payload, record.data, record.headers)
                tally.record(envelope.data, record.time)
            except DecodeError:
                tally.record_unreadable()
            self._last_seq = record.seq


def _load_exposition() -> "Exposition":
    """Return an empty exposition. The exporter is imported for the first request: that takes half a second."""
    from trunkline.telemetry.prometheus import Exposition

    return Exposition()


async def get_metrics(request: Request) -> Response:
    """``GET /metrics``"""
    if (
        IDENTITY in request.scope
    ):  # the metrics are totals of all blocks, so they are open to everybody or to the owner
        sender_of(request).require_administrator("reads the metrics of all blocks", TokenScope.OPERATE)
    return Response(await app_state_of(request).metrics.text(), media_type=MEDIA_TYPE)


def metrics_routes(metrics_for: Literal["token", "open", "off"]) -> tuple[ScopedRoute, ...]:
    """Return the route, unless the metrics are off."""
    if metrics_for == "off":
        return ()
    scope = None if metrics_for == "open" else TokenScope.OPERATE
    return (ScopedRoute(PATH, get_metrics, methods=["GET"], scope=scope),)
