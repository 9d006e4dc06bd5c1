"""Exports to a collector the spans that killed workers left open.

A process exports a span when the span ends. A killed worker never exports its open spans, so at the collector the spans
that other workers made for it have no parent. The bus's span stream has the open spans. Some seconds after a run of a
turn ended, the monitor that ran the turn reads the stream and exports them.
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
"""Seconds before a trace is checked: by then the last heartbeat of a dead worker has expired."""

RECHECK_SECONDS = 2.0
"""Seconds before a missing worker is checked again: a restarted server has no heartbeats at first."""


class SpanProcess(NamedTuple):
    """A process that made spans. The fields are those of ``SpanBatch``."""

    host: str
    pid: int
    instance: str


class OrphanSpanExporter:
    """Exports the open spans of dead processes. Each trace is checked in a task of ``tasks``."""

    def __init__(self, bus: Bus, tasks: TaskGroup) -> None:
        self._bus = bus
        self._tasks = tasks
        self._looking: set[str] = set()

    def check_later(self, trace: str) -> None:
        """Check the trace after SETTLE_SECONDS, and export the spans that dead processes left open in it."""
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
        """Return the processes without a live worker, both now and after RECHECK_SECONDS."""
        for pause in (0.0, RECHECK_SECONDS):
            if processes:
                await anyio.sleep(pause)
                entries = await self._bus.kv(WORKER_BUCKET).entries()
                living = {(entry.value.host, entry.value.pid) for entry in entries if entry.value is not None}
                processes = [process for process in processes if process[:2] not in living]
        return processes

    async def _tell(self, trace: str, process: SpanProcess, spans: list[SpanRecord]) -> None:
        """Export the spans, and publish them as ended, so that no other worker exports them again."""
        from trunkline.telemetry.setup import export_orphan_spans  # the import loads the SDK

        export_orphan_spans(spans, process.instance)
        batch = SpanBatch(spans=tuple(spans), instance=process.instance, host=process.host, pid=process.pid)
        await self._bus.publish(SPANS, batch, trace=trace)


def find_orphan_spans(batches: Iterable[SpanBatch]) -> Mapping[SpanProcess, list[SpanRecord]]:
    """Return the spans that have not ended, by process. Each gets the latest end among itself and its descendants."""
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
