"""Metrics of the platform: workers, the number and age of waiting messages, and the sizes of streams."""

import logging
from datetime import UTC, datetime
from typing import get_args

import anyio

from trunkline.contracts.streams import DEAD_STREAM, INBOX_STREAM, STREAMS
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline.telemetry import semconv
from trunkline.telemetry.otlp_settings import export_interval
from trunkline.telemetry.turn_metrics import MetricSink
from trunkline_bus import Bus, BusError
from trunkline_bus.streams.admin import StreamState, stream_state

log = logging.getLogger(__name__)


MOST_SECONDS, LEAST_SECONDS = 10.0, 0.5
"""Seconds between two measurements for a collector: the export interval, within these bounds."""


async def export_platform_metrics(bus: Bus, sink: MetricSink) -> None:
    """Measure the platform into ``sink`` repeatedly, until cancelled. Every gateway reports the same
    values."""
    pause = min(MOST_SECONDS, max(LEAST_SECONDS, export_interval()))
    while True:
        try:
            await measure_platform(bus, sink)
        except BusError as error:
            log.debug("the platform was not measured: %s", error)
        await anyio.sleep(pause)


async def measure_platform(bus: Bus, sink: MetricSink) -> None:
    """Measure the platform into ``sink`` once. Raises BusError when the bus does not answer."""
    await _workers(bus, sink)
    streams = {spec.name: await stream_state(bus, spec.name) for spec in STREAMS}
    for name, state in streams.items():
        sink.add(semconv.STREAM_SIZE, state.bytes, {semconv.STREAM: name})
    inbox = streams[INBOX_STREAM]
    sink.add(semconv.INBOX_MESSAGES, inbox.messages, {})
    sink.add(semconv.INBOX_LAG, _age(inbox), {})
    sink.add(semconv.DEAD_LETTERS, streams[DEAD_STREAM].messages, {})


async def _workers(bus: Bus, sink: MetricSink) -> None:
    """Measure the workers. A kind without any worker is reported as 0, so that an alert can match it."""
    beats = [entry.value for entry in await bus.kv(WORKER_BUCKET).entries() if entry.value is not None]
    for kind in get_args(WorkerKind):
        mine = [beat for beat in beats if beat.kind == kind]
        for draining in (False, True):
            count = sum(beat.draining is draining for beat in mine)
            sink.add(semconv.WORKERS, count, {semconv.KIND: kind, semconv.DRAINING: str(draining).lower()})
        sink.add(semconv.RESTARTS, sum(beat.restarts for beat in mine), {semconv.KIND: kind})


def _age(stream: StreamState) -> float:
    """Return the age of the oldest message in seconds."""
    if stream.first is None:
        return 0.0
    return round(max(0.0, (datetime.now(UTC) - stream.first).total_seconds()), 3)
