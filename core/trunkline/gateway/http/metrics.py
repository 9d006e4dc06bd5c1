"""``GET /metrics``: counters for Prometheus. Behind the door like everything else, unless ``gateway.metrics`` says so.

Nothing is counted until somebody asks for the first time, and then from that moment on; each time what the journal got
since is read.
"""

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trunkline.gateway.http.parts import parts_of
from trunkline.gateway.metrics import Meter
from trunkline.subjects import JOURNAL, WORKER_BUCKET
from trunkline_bus import Bus, DecodeError
from trunkline_bus.operating import raw_history

PATH = "/metrics"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Reads the journal on as far as it goes, and tells what it came to. Raises BusError when it cannot."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._meter = Meter()
        self._order = anyio.Lock()
        self._seen: int | None = None

    async def text(self) -> str:
        """The counters as of now."""
        async with self._order:
            if self._seen is None:
                await self._begin()
            else:
                await self._read(self._seen)
        entries = await self._bus.kv(WORKER_BUCKET).entries()
        return self._meter.text(entry.value for entry in entries if entry.value is not None)

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
                self._meter.take(envelope.data, record.time)
            except DecodeError:
                self._meter.skip()
            self._seen = record.seq


async def get_metrics(request: Request) -> Response:
    """``GET /metrics``"""
    return Response(await parts_of(request).metrics.text(), media_type=MEDIA_TYPE)


ROUTES = (Route(PATH, get_metrics, methods=["GET"]),)
