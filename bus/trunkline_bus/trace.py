"""Trace context in messages, and spans without the text of messages. Uses the OpenTelemetry API; sets up no
exporter.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


def current_traceparent() -> str | None:
    """Return the W3C ``traceparent`` of the current span; None if there is no valid span."""
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"


@contextmanager
def remote_parent(traceparent: str | None) -> Iterator[None]:
    """Make new spans in the block children of ``traceparent``. None or an invalid value has no effect."""
    parent = _context_of(traceparent)
    if parent is None:
        yield
        return
    token = context.attach(trace.set_span_in_context(NonRecordingSpan(parent)))
    try:
        yield
    finally:
        context.detach(token)


@contextmanager
def start_span(
    tracer: trace.Tracer,
    name: str,
    *,
    kind: trace.SpanKind = trace.SpanKind.INTERNAL,
    attributes: Mapping[str, str | int] | None = None,
    began: int | None = None,
) -> Iterator[trace.Span]:
    """Make a span the current one while the block runs.

    If an exception ends the block, the span records only the type of the exception, because its text may quote what
    people said. ``began`` is the start of the span in nanoseconds, if the span began before the call.
    """
    with tracer.start_as_current_span(
        name, kind=kind, attributes=attributes, start_time=began, record_exception=False,
        set_status_on_exception=False,
    ) as span:  # fmt: skip
        try:
            yield span
        except Exception as error:
            record_failure(span, error)
            raise


class UnrecordedSpan(NonRecordingSpan):
    """A span that is recorded only if the work fails; it remembers the failure."""

    def __init__(self) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.failure: str | None = None
        """The type of the exception; None without a failure."""

    def set_status(self, status: trace.Status | trace.StatusCode, description: str | None = None) -> None:
        """Record a failure."""
        self.failure = description


def record_failure(span: trace.Span, error: Exception) -> None:
    """Mark a span as failed by an exception of this type."""
    span.set_attribute("error.type", type(error).__qualname__)
    span.set_status(trace.StatusCode.ERROR, type(error).__qualname__)


def link_span(traceparent: str | None) -> None:
    """Link the current span to the span of another trace. None or an invalid value has no effect."""
    other = _context_of(traceparent)
    if other is not None:
        trace.get_current_span().add_link(other)


def _context_of(traceparent: str | None) -> SpanContext | None:
    match = _TRACEPARENT.fullmatch(traceparent or "")
    if match is None:
        return None
    trace_id, span_id, flags = (int(group, 16) for group in match.groups())
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
