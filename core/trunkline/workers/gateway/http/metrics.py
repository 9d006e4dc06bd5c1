"""``GET /metrics``: measures for Prometheus. Behind the door like everything else, unless ``gateway.metrics`` says so.

Nothing is counted until somebody asks for the first time, and then from that moment on; each time what the journal got
since is read.
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
    """Reads the journal on as far as it goes, and tells what it came to. Raises BusError when it cannot."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._measured = Exposition()
        self._tally = TurnMetrics(self._measured)
        self._order = anyio.Lock()
        self._seen: int | None = None

    async def text(self) -> str:
        """What was counted, and how things stand now."""
        async with self._order:
            if self._seen is None:
                await self._begin()
            else:
                await self._read(self._seen)
            await measure_platform(self._bus, self._measured)
            return self._measured.text()

    async def _begin(self) -> None:
        try:
            last = await self._bus.last(JOURNAL)
            self._seen = last.seq if last is not None else 0
        except DecodeError:  # a later version wrote the last one
            self._seen = max([record.seq async for record in raw_history(self._bus, JOURNAL)], default=0)

    async def _read(self, after: int) -> None:
        async for record in raw_history(self._bus, JOURNAL, after=after):
            try:
                envelope = await self._bus.inbound.open(JOURNAL.payload, record.data, record.headers)
                self._tally.record(envelope.data, record.time)
            except DecodeError:
                self._tally.record_unreadable()
            self._seen = record.seq


async def get_metrics(request: Request) -> Response:
    """``GET /metrics``"""
    return Response(await app_state_of(request).metrics.text(), media_type=MEDIA_TYPE)


ROUTES = (Route(PATH, get_metrics, methods=["GET"]),)
