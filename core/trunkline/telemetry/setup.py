"""Sets up the OpenTelemetry SDK for a process: traces and metrics. No other module does.

Spans are published to the bus's span stream, by trace, so ``trunkline trace`` needs no collector. Spans and metrics
are also exported to an OTLP collector when the standard variables name one (``telemetry/otlp_settings.py``).
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
"""The largest number of finished spans that wait while the bus is unavailable. The oldest ones are dropped first."""

SHUTDOWN_FLUSH_SECONDS = 1.0
"""Seconds that an exiting process waits for its collector. The SDK's shutdown is not used, because it waits longer."""


@asynccontextmanager
async def export_spans_to_bus(bus: Bus, service: str, instance: str) -> AsyncIterator[None]:
    """Trace this process as ``service`` and send its spans to the bus within the context.

    ``instance`` distinguishes the processes of one service.
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
    """Export the metrics of this process, at the interval that the SDK's variables set.

    ``flush_on_exit`` exports the measurements after the last interval.
    """
    from opentelemetry.sdk.metrics import MeterProvider  # most processes do not need the import

    if not isinstance(
        metrics.get_meter_provider(), MeterProvider
    ):  # otherwise the embedding program already exports
        metrics.set_meter_provider(_measuring(_resource(service, instance)))
    yield


@asynccontextmanager
async def flush_on_exit() -> AsyncIterator[None]:
    """At the end of the context, send waiting spans and metrics to the collector.

    Enter this context before ``export_spans_to_bus`` and ``export_metrics``.
    """
    try:
        yield
    finally:
        tracing = trace.get_tracer_provider()
        last = tracing.last_flush if isinstance(tracing, ProcessTracerProvider) else ShutdownFlush()
        await last.run(_exporting())


class ShutdownFlush:
    """Sends waiting spans and metrics when a worker ends, because a process may exit without running exit handlers.

    After a collector failed to answer once, the other workers of the process do not wait for that collector.
    """

    def __init__(self) -> None:
        self._in_vain: set[Exporting] = set()

    async def run(self, providers: "Iterable[Exporting]") -> None:
        """Flush these providers concurrently, for at most SHUTDOWN_FLUSH_SECONDS. Each may have its own collector."""
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
    """Flush in a daemon thread, which does not delay the exit: an exporter may exceed its timeout."""
    thread = threading.Thread(
        target=_flush_here, args=(provider, waiting), name="trunkline-flush", daemon=True
    )
    thread.start()
    while thread.is_alive():  # noqa: ASYNC110 - the thread may end after the event loop, so it cannot set an event
        await anyio.sleep(0.01)


def _flush_here(provider: "Exporting", waiting: "set[Exporting]") -> None:
    try:
        sent = provider.force_flush(int(SHUTDOWN_FLUSH_SECONDS * 1000))
    except Exception as error:  # an exporter may raise any exception; the caller logs what is lost
        log.debug("the last flush of %s failed: %s", _signal_of(provider), error)
        return
    if sent:
        waiting.discard(provider)


def _exporting() -> "Iterator[Exporting]":
    """Yield the providers of this process that export to a collector."""
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
    """Passes started and finished spans to the present outlets. The SDK cannot remove a processor from its own list."""

    def __init__(self) -> None:
        self.outlets: set[SpanBuffer] = set()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Pass on a span that has started. Called in the thread that started the span."""
        if span.context is not None and span.context.trace_flags.sampled:
            for outlet in tuple(self.outlets):
                outlet.begin(span)

    def on_end(self, span: ReadableSpan) -> None:
        """Pass on a span that has ended. Called in the thread that ended the span."""
        if span.context is not None and span.context.trace_flags.sampled:
            for outlet in tuple(self.outlets):
                outlet.put(span)


class SpanBuffer:
    """The spans that wait to be sent to the bus: the ended ones, and the open ones that were not sent yet.

    Open spans are sent because a killed process cannot send them later: the spans that other processes made for it
    would have no parent.
    """

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.spans: deque[ReadableSpan] = deque(maxlen=MAX_BUFFERED_SPANS)
        self._untold: dict[int, ReadableSpan] = {}
        self.dropped = 0
        """The number of spans that were dropped or could not be sent and that no log line has counted yet."""

    def begin(self, span: ReadableSpan) -> None:
        """Add a span that has started."""
        if span.context is not None:
            self._untold[span.context.span_id] = span

    def put(self, span: ReadableSpan) -> None:
        """Add a span that has ended. With MAX_BUFFERED_SPANS waiting, the oldest one is dropped."""
        if span.context is not None:
            self._untold.pop(span.context.span_id, None)
        self.dropped += len(self.spans) == MAX_BUFFERED_SPANS
        self.spans.append(span)

    def tell_dropped(self) -> None:
        """Log the number of spans that are missing in the traces, and reset it."""
        if self.dropped:
            log.warning("%d spans are missing in the traces: they could not be sent in time", self.dropped)
            self.dropped = 0

    def take(self) -> Mapping[str, list[SpanRecord]]:
        """Remove and return the waiting spans, by trace."""
        by_trace: defaultdict[str, list[SpanRecord]] = defaultdict(list)
        while self.spans:
            record = _record(self.spans.popleft())
            by_trace[record.trace_id].append(record)
        while self._untold:
            record = _record(self._untold.popitem()[1])
            by_trace[record.trace_id].append(replace(record, end=time.time_ns(), unfinished=True))
        return by_trace


class ProcessTracerProvider(TracerProvider):
    """The tracer provider of this process. It is created once, because OpenTelemetry allows no second one."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource=resource, shutdown_on_exit=False)
        self.exits = SpanFanOut()
        self.last_flush = ShutdownFlush()
        self.collecting: SpanProcessor | None = None
        """The processor that exports to a collector; None when no collector is configured."""
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
    if isinstance(provider, TracerProvider):  # the embedding program already traces
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
    """Export the spans that a killed process left open, under that process's name and with the given ends.

    A span that its own process exported is not among them, because an exported span has ended. Does nothing when this
    process exports to no collector.
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
