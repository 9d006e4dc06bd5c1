"""Tells a collector of spans that killed workers had open.

A collector is told of a span when it ends. So of what a killed worker had open it never hears, and what others did for
that worker has no parent there. The bus has such spans: whoever ran the turn last looks for them some seconds later.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from trunkline.contracts.workers.messages import SpanBatch, SpanRecord
from trunkline.contracts.workers.subjects import SPANS, WORKER_BUCKET
from trunkline.telemetry import semconv
from trunkline.telemetry.trace_tree import latest_spans
from trunkline_bus import Bus, BusError

log = logging.getLogger(__name__)

SETTLE_SECONDS = 8.0
"""Seconds after which a trace is looked at: by then a dead worker's last beat is gone."""

RECHECK_SECONDS = 2.0
"""Seconds after which it is looked whether a worker is still missing: a server that restarts has no beats at first."""


class SpanProcess(NamedTuple):
    """A process that had spans; see ``SpanBatch``."""

    host: str
    pid: int
    instance: str


class OrphanSpanExporter:
    """Looks at traces, each in a task of ``tasks``."""

    def __init__(self, bus: Bus, tasks: TaskGroup) -> None:
        self._bus = bus
        self._tasks = tasks
        self._looking: set[str] = set()

    def check_later(self, trace: str) -> None:
        """Look at this trace in some seconds, and export what dead processes left open in it."""
        if trace not in self._looking:
            self._looking.add(trace)
            self._tasks.start_soon(self._look, trace)

    async def _look(self, trace: str) -> None:
        await anyio.sleep(SETTLE_SECONDS)
        self._looking.discard(trace)
        try:
            batches = [stored.data async for stored in self._bus.history(SPANS, after=0, trace=trace)]
            left = find_orphan_spans(batches)
            for process in await self._dead(left):
                await self._tell(trace, process, left[process])
        except BusError as error:
            log.debug("open spans of trace %s could not be exported: %s", trace, error)

    async def _dead(self, processes: Collection[SpanProcess]) -> Collection[SpanProcess]:
        """Those of which no worker lives, now and somewhat later."""
        for pause in (0.0, RECHECK_SECONDS):
            if processes:
                await anyio.sleep(pause)
                entries = await self._bus.kv(WORKER_BUCKET).entries()
                living = {(entry.value.host, entry.value.pid) for entry in entries if entry.value is not None}
                processes = [process for process in processes if process[:2] not in living]
        return processes

    async def _tell(self, trace: str, process: SpanProcess, spans: list[SpanRecord]) -> None:
        """Export them, and say on the bus that this is done, so that nobody exports them again."""
        from trunkline.telemetry.setup import export_orphan_spans  # which loads the SDK

        export_orphan_spans(spans, process.instance)
        batch = SpanBatch(spans=tuple(spans), instance=process.instance, host=process.host, pid=process.pid)
        await self._bus.publish(SPANS, batch, trace=trace)


def find_orphan_spans(batches: Iterable[SpanBatch]) -> Mapping[SpanProcess, list[SpanRecord]]:
    """The spans that have not ended, by process, ended where the last thing ended that was done for them."""
    whose: dict[str, SpanProcess] = {}
    spans: list[SpanRecord] = []
    for batch in batches:
        spans.extend(batch.spans)
        process = SpanProcess(batch.host, batch.pid, batch.instance)
        whose.update({span.span_id: process for span in batch.spans if span.unfinished})
    found: defaultdict[SpanProcess, list[SpanRecord]] = defaultdict(list)
    ends: dict[str | None, int] = {}
    for span in sorted(latest_spans(spans), key=lambda span: span.start, reverse=True):
        end = max(span.end, ends.get(span.span_id, 0))
        ends[span.parent_id] = max(end, ends.get(span.parent_id, 0))
        if span.unfinished and whose[span.span_id].pid:
            attributes = {**span.attributes, semconv.UNFINISHED: True}
            ended = replace(span, end=end, unfinished=False, attributes=attributes)
            found[whose[span.span_id]].append(ended)
    return found
