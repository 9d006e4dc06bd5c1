"""Turning traces and metrics on for a process. The only place that imports the OpenTelemetry SDK.

Finished spans go, by trace, to the bus's span stream, so that ``trunkline trace`` needs no collector. Spans and metrics
go to an OTLP collector when the standard variables name one (``telemetry/collector.py``).
"""

import logging
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

import trunkline
from trunkline.messages.workers import SpanBatch, SpanRecord
from trunkline.subjects import SPANS
from trunkline.telemetry import names
from trunkline.telemetry.collector import wanted
from trunkline_bus import Bus, BusError, background_tasks

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.25
HELD_SPANS = 20_000
"""How many finished spans wait for a bus that is away; older ones are dropped."""

LAST_SECONDS = 2.0
"""How long a process that leaves waits for its collector."""


@asynccontextmanager
async def spans_to_bus(bus: Bus, service: str, instance: str) -> AsyncIterator[None]:
    """Trace this process as ``service`` and send its finished spans to the bus for the length of the block.

    ``instance`` tells processes of one service apart.
    """
    outlet = SpanOutlet()
    exits = _exits(_resource(service, instance))
    exits.outlets.add(outlet)
    try:
        async with background_tasks() as tasks:
            tasks.start_soon(_send_for_ever, bus, outlet)
            yield
    finally:
        exits.outlets.discard(outlet)
        with anyio.move_on_after(1.0, shield=True):
            await _send(bus, outlet)
        if isinstance(provider := trace.get_tracer_provider(), TracedProcess) and wanted("traces"):
            await _flush(provider)


@asynccontextmanager
async def metrics_to_collector(service: str, instance: str) -> AsyncIterator[None]:
    """Export what this process measures, at the interval that the SDK's variables say and at the block's end."""
    from opentelemetry.sdk.metrics import MeterProvider  # which most processes have no use for

    provider = metrics.get_meter_provider()
    if not isinstance(provider, MeterProvider):  # else the program around us exports already: join it
        provider = _measuring(_resource(service, instance))
        metrics.set_meter_provider(provider)
    try:
        yield
    finally:
        await _flush(provider)


class Exits(SpanProcessor):
    """Hands finished spans to whoever is there now. The SDK's own list of processors cannot be shortened."""

    def __init__(self) -> None:
        self.outlets: set[SpanOutlet] = set()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing is to be done yet."""

    def on_end(self, span: ReadableSpan) -> None:
        """Called in the thread that ended the span."""
        if span.context is not None and span.context.trace_flags.sampled:
            for outlet in tuple(self.outlets):
                outlet.spans.append(span)


class SpanOutlet:
    """Spans that wait to be sent."""

    def __init__(self) -> None:
        self.spans: deque[ReadableSpan] = deque(maxlen=HELD_SPANS)

    def take(self) -> Mapping[str, list[SpanRecord]]:
        """What waits, by trace."""
        by_trace: defaultdict[str, list[SpanRecord]] = defaultdict(list)
        while self.spans:
            record = _record(self.spans.popleft())
            by_trace[record.trace_id].append(record)
        return by_trace


class TracedProcess(TracerProvider):
    """This process's provider, made once: OpenTelemetry allows no second one."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource=resource)
        self.exits = Exits()
        self.add_span_processor(self.exits)


def _resource(service: str, instance: str) -> Resource:
    return Resource.create(
        {
            names.SERVICE_NAME: service,
            names.SERVICE_INSTANCE: instance,
            names.SERVICE_VERSION: trunkline.__version__,
        }
    )


def _measuring(resource: Resource) -> "MeterProvider":
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    return MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource)


async def _flush(provider: "TracerProvider | MeterProvider") -> None:
    """Send what waits. A process may leave without the interpreter's own good-byes."""
    with anyio.move_on_after(LAST_SECONDS, shield=True):
        await anyio.to_thread.run_sync(
            lambda: provider.force_flush(int(LAST_SECONDS * 1000)), abandon_on_cancel=True
        )


def _exits(resource: Resource) -> Exits:
    provider = trace.get_tracer_provider()
    if isinstance(provider, TracedProcess):
        return provider.exits
    if isinstance(provider, TracerProvider):  # the program around us traces already: join it
        exits = Exits()
        provider.add_span_processor(exits)
        return exits
    provider = TracedProcess(resource)
    if wanted("traces"):
        _export_to_collector(provider)
    trace.set_tracer_provider(provider)
    return provider.exits


def _export_to_collector(provider: TracerProvider) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))


async def _send_for_ever(bus: Bus, outlet: SpanOutlet) -> None:
    while True:
        await anyio.sleep(FLUSH_SECONDS)
        if bus.connected:
            await _send(bus, outlet)


async def _send(bus: Bus, outlet: SpanOutlet) -> None:
    for trace_id, spans in outlet.take().items():
        try:
            await bus.publish(SPANS, SpanBatch(spans=tuple(spans)), trace=trace_id)
        except BusError as error:
            log.debug("%d spans of trace %s were not sent: %s", len(spans), trace_id, error)


def _record(span: ReadableSpan) -> SpanRecord:
    context = span.context
    assert context is not None
    return SpanRecord(
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        parent_id=f"{span.parent.span_id:016x}" if span.parent else None,
        name=span.name,
        kind=span.kind.name.lower(),
        service=span.instrumentation_scope.name if span.instrumentation_scope else "",
        start=span.start_time or 0,
        end=span.end_time or 0,
        status=span.status.status_code.name.lower(),  # type: ignore[arg-type]
        message=span.status.description or "",
        attributes=_plain(span.attributes),
        events=tuple({"name": event.name, "time": event.timestamp} for event in span.events),
        links=tuple(f"{link.context.trace_id:032x}" for link in span.links),
    )


def _plain(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in (attributes or {}).items()
    }
