"""Turning traces and metrics on for a process. Nothing else sets the OpenTelemetry SDK up for a process.

Spans go, by trace, to the bus's span stream, so that ``trunkline trace`` needs no collector. Spans and metrics
go to an OTLP collector when the standard variables name one (``telemetry/otlp_settings.py``).
"""

import logging
import os
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from msgspec.structs import replace
from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

import trunkline
from trunkline.contracts.workers.messages import SpanBatch, SpanRecord
from trunkline.contracts.workers.subjects import SPANS
from trunkline.telemetry import semconv
from trunkline.telemetry.otlp_settings import is_exported
from trunkline_bus import Bus, BusError, background_tasks

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider

    Exporting = TracerProvider | MeterProvider

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.25
MAX_BUFFERED_SPANS = 20_000
"""How many finished spans wait for a bus that is away; older ones are dropped."""

SHUTDOWN_FLUSH_SECONDS = 1.0
"""How long a process that leaves waits for its collector. The SDK's own good-bye, which waits longer, is not used."""


@asynccontextmanager
async def export_spans_to_bus(bus: Bus, service: str, instance: str) -> AsyncIterator[None]:
    """Trace this process as ``service`` and send its finished spans to the bus for the length of the block.

    ``instance`` tells processes of one service apart.
    """
    outlet = SpanBuffer(instance)
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


@asynccontextmanager
async def export_metrics(service: str, instance: str) -> AsyncIterator[None]:
    """Export what this process measures, at the interval that the SDK's variables say. What comes after the last
    interval is for ``flush_on_exit``."""
    from opentelemetry.sdk.metrics import MeterProvider  # which most processes have no use for

    if not isinstance(
        metrics.get_meter_provider(), MeterProvider
    ):  # else the program around us exports already
        metrics.set_meter_provider(_measuring(_resource(service, instance)))
    yield


@asynccontextmanager
async def flush_on_exit() -> AsyncIterator[None]:
    """At the block's end, send the collector what waits for it. To be entered before the two above."""
    try:
        yield
    finally:
        tracing = trace.get_tracer_provider()
        last = tracing.last_flush if isinstance(tracing, ProcessTracerProvider) else ShutdownFlush()
        await last.run(_exporting())


class ShutdownFlush:
    """Sends what waits when a worker ends: a process may leave without the interpreter's own good-byes. Once a
    collector has not answered, the other workers of the process do not wait for it any more."""

    def __init__(self) -> None:
        self._in_vain: set[Exporting] = set()

    async def run(self, providers: "Iterable[Exporting]") -> None:
        """Wait for the collectors of spans and of metrics, for a moment and at once: they may be two."""
        waiting = set(providers) - self._in_vain
        with anyio.move_on_after(SHUTDOWN_FLUSH_SECONDS, shield=True):
            async with anyio.create_task_group() as tasks:
                for provider in tuple(waiting):
                    tasks.start_soon(_flush, provider, waiting)
        for signal in sorted(_signal_of(provider) for provider in waiting - self._in_vain):
            log.warning(
                "the last %s are dropped: their collector did not take them within %g s",
                signal,
                SHUTDOWN_FLUSH_SECONDS,
            )
        self._in_vain |= waiting


async def _flush(provider: "Exporting", waiting: "set[Exporting]") -> None:
    """In a thread that no process waits for at its end: an exporter waits longer than it is told to."""
    thread = threading.Thread(
        target=_flush_here, args=(provider, waiting), name="trunkline-flush", daemon=True
    )
    thread.start()
    while thread.is_alive():  # noqa: ASYNC110 - it may end when there is no loop any more to tell
        await anyio.sleep(0.01)


def _flush_here(provider: "Exporting", waiting: "set[Exporting]") -> None:
    try:
        sent = provider.force_flush(int(SHUTDOWN_FLUSH_SECONDS * 1000))
    except Exception as error:  # an exporter's, which may be anything; the caller says what is lost
        log.debug("the last flush of %s failed: %s", _signal_of(provider), error)
        return
    if sent:
        waiting.discard(provider)


def _exporting() -> "Iterator[Exporting]":
    """Export the spans and metrics of this process to a collector."""
    tracing, measuring = trace.get_tracer_provider(), metrics.get_meter_provider()
    if isinstance(tracing, ProcessTracerProvider) and is_exported("traces"):
        yield tracing
    if is_exported("metrics"):
        from opentelemetry.sdk.metrics import MeterProvider

        if isinstance(measuring, MeterProvider):
            yield measuring


def _signal_of(provider: "Exporting") -> str:
    return "spans" if isinstance(provider, TracerProvider) else "metrics"


class SpanFanOut(SpanProcessor):
    """Hands finished spans to whoever is there now. The SDK's own list of processors cannot be shortened."""

    def __init__(self) -> None:
        self.outlets: set[SpanBuffer] = set()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Called in the thread that began the span."""
        if span.context is not None and span.context.trace_flags.sampled:
            for outlet in tuple(self.outlets):
                outlet.begin(span)

    def on_end(self, span: ReadableSpan) -> None:
        """Called in the thread that ended the span."""
        if span.context is not None and span.context.trace_flags.sampled:
            for outlet in tuple(self.outlets):
                outlet.put(span)


class SpanBuffer:
    """Spans that wait to be sent: those that ended, and those under way of which nobody was told yet. A process that is
    killed takes its spans along, and what others did for it would have no parent."""

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.spans: deque[ReadableSpan] = deque(maxlen=MAX_BUFFERED_SPANS)
        self._untold: dict[int, ReadableSpan] = {}
        self.dropped = 0
        """How many were dropped or could not be sent, and were not told of yet."""

    def begin(self, span: ReadableSpan) -> None:
        """Note a span that has begun."""
        if span.context is not None:
            self._untold[span.context.span_id] = span

    def put(self, span: ReadableSpan) -> None:
        """Add a span that ended, in place of the oldest when there are too many."""
        if span.context is not None:
            self._untold.pop(span.context.span_id, None)
        self.dropped += len(self.spans) == MAX_BUFFERED_SPANS
        self.spans.append(span)

    def tell_dropped(self) -> None:
        """Say in the log how many are missing in the traces."""
        if self.dropped:
            log.warning("%d spans are missing in the traces: they could not be sent in time", self.dropped)
            self.dropped = 0

    def take(self) -> Mapping[str, list[SpanRecord]]:
        """Return the waiting spans, by trace."""
        by_trace: defaultdict[str, list[SpanRecord]] = defaultdict(list)
        while self.spans:
            record = _record(self.spans.popleft())
            by_trace[record.trace_id].append(record)
        while self._untold:
            record = _record(self._untold.popitem()[1])
            by_trace[record.trace_id].append(replace(record, end=time.time_ns(), unfinished=True))
        return by_trace


class ProcessTracerProvider(TracerProvider):
    """This process's provider, made once: OpenTelemetry allows no second one."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource=resource, shutdown_on_exit=False)
        self.exits = SpanFanOut()
        self.last_flush = ShutdownFlush()
        self.collecting: SpanProcessor | None = None
        """What exports to a collector, if one is named."""
        self.add_span_processor(self.exits)


def _resource(service: str, instance: str) -> Resource:
    return Resource.create(
        {
            semconv.SERVICE_NAME: service,
            semconv.SERVICE_INSTANCE: instance,
            semconv.SERVICE_VERSION: trunkline.__version__,
        }
    )


def _measuring(resource: Resource) -> "MeterProvider":
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    return MeterProvider([reader], resource, shutdown_on_exit=False)


def _exits(resource: Resource) -> SpanFanOut:
    provider = trace.get_tracer_provider()
    if isinstance(provider, ProcessTracerProvider):
        return provider.exits
    if isinstance(provider, TracerProvider):  # the program around us traces already: join it
        exits = SpanFanOut()
        provider.add_span_processor(exits)
        return exits
    provider = ProcessTracerProvider(resource)
    if is_exported("traces"):
        _export_to_collector(provider)
    trace.set_tracer_provider(provider)
    return provider.exits


def _export_to_collector(provider: ProcessTracerProvider) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.environment_variables import OTEL_BSP_SCHEDULE_DELAY
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    pause = None if os.environ.get(OTEL_BSP_SCHEDULE_DELAY) else FLUSH_SECONDS * 1000
    provider.collecting = BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=pause)
    provider.add_span_processor(provider.collecting)


def export_orphan_spans(spans: Iterable[SpanRecord], instance: str) -> None:
    """Export spans that a process left open when it was killed, as that process's, with the end that they are given.

    Nothing is sent twice by this: a span that is exported when it ends was not left open.
    """
    provider = trace.get_tracer_provider()
    if not isinstance(provider, ProcessTracerProvider) or provider.collecting is None:
        return
    kind = instance.rpartition("_")[0]
    service = "trunkline" if kind in ("", "trunkline") else f"trunkline-{kind}"
    resource = _resource(service, instance)
    for span in spans:
        provider.collecting.on_end(_ended(span, resource))


def _ended(span: SpanRecord, resource: Resource) -> ReadableSpan:
    def context(span_id: str) -> trace.SpanContext:
        sampled = trace.TraceFlags(trace.TraceFlags.SAMPLED)
        return trace.SpanContext(
            int(span.trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=sampled
        )

    return ReadableSpan(
        span.name,
        context=context(span.span_id),
        parent=context(span.parent_id) if span.parent_id else None,
        resource=resource,
        attributes=span.attributes,
        kind=trace.SpanKind[span.kind.upper()],
        start_time=span.start,
        end_time=span.end,
        instrumentation_scope=InstrumentationScope(span.service),
    )


async def _send_for_ever(bus: Bus, outlet: SpanBuffer) -> None:
    while True:
        await anyio.sleep(FLUSH_SECONDS)
        if bus.connected:
            await _send(bus, outlet)


async def _send(bus: Bus, outlet: SpanBuffer) -> None:
    for trace_id, spans in outlet.take().items():
        try:
            batch = SpanBatch(
                spans=tuple(spans), instance=outlet.instance, host=socket.gethostname(), pid=os.getpid()
            )
            await bus.publish(SPANS, batch, trace=trace_id)
        except BusError as error:
            log.debug("%d spans of trace %s were not sent: %s", len(spans), trace_id, error)
            outlet.dropped += len(spans)
    outlet.tell_dropped()


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
        events=tuple(
            {"name": event.name, "time": event.timestamp, **_plain(event.attributes)} for event in span.events
        ),
        links=tuple(f"{link.context.trace_id:032x}" for link in span.links),
    )


def _plain(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in (attributes or {}).items()
    }
