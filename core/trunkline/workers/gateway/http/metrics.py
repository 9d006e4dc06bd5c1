"""``GET /metrics``: metrics for Prometheus. It needs a credential unless ``gateway.metrics`` is ``open``.

Counting starts with the first request. Each request reads the journal entries since the last one.
"""

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.telemetry.turn_metrics import TurnMetrics
from trunkline.workers.gateway.http.app_state import app_state_of
from trunkline.workers.gateway.platform_metrics import measure_platform
from trunkline.workers.gateway.prometheus import Exposition
from trunkline_bus import Bus, DecodeError
from trunkline_bus.streams.admin import raw_history

PATH = "/metrics"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class JournalMetrics:
    """Reads the journal and counts its turns. Methods raise BusError when the bus does not answer."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._exposition = Exposition()
        self._tally = TurnMetrics(self._exposition)
        self._order = anyio.Lock()
        self._last_seq: int | None = None

    async def text(self) -> str:
        """Return the counted metrics and the current state of the platform."""
        async with self._order:
            if self._last_seq is None:
                await self._start()
            else:
                await self._read(self._last_seq)
            await measure_platform(self._bus, self._exposition)
            return self._exposition.text()

    async def _start(self) -> None:
        try:
            last = await self._bus.last(JOURNAL)
            self._last_seq = last.seq if last is not None else 0
        except DecodeError:  # a later version wrote the last entry
            self._last_seq = max([record.seq async for record in raw_history(self._bus, JOURNAL)], default=0)

    async def _read(self, after: int) -> None:
        async for record in raw_history(self._bus, JOURNAL, after=after):
            try:
                envelope = await self._bus.inbound.open(JOURNAL.payload, record.data, record.headers)
                self._tally.record(envelope.data, record.time)
            except DecodeError:
                self._tally.record_unreadable()
            self._last_seq = record.seq


async def get_metrics(request: Request) -> Response:
    """``GET /metrics``"""
    return Response(await app_state_of(request).metrics.text(), media_type=MEDIA_TYPE)


ROUTES = (Route(PATH, get_metrics, methods=["GET"]),)
