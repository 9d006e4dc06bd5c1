"""The spans of this module: the details of a failure that they record, and those that they omit."""

import re
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from trunkline_bus import start_span

ROOT = Path(__file__).parents[2]


def test_a_failed_span_records_the_error_type_and_never_its_text() -> None:
    """An exception may quote message text; it is raised to its handler, and its text not sent to a collector."""
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with pytest.raises(ValueError, match="secret"), start_span(provider.get_tracer("test"), "work"):
        raise ValueError("the secret that somebody said")
    (span,) = spans.get_finished_spans()
    assert (
        not span.status.is_ok
        and span.attributes is not None
        and span.attributes["error.type"] == "ValueError"
    )
    assert "secret" not in span.to_json()


def test_spans_are_created_in_one_module_only() -> None:
    """OpenTelemetry's own way writes the exception's text and traceback into the span."""
    own = re.compile(r"\.(start_as_current_span|start_span|record_exception)\(")
    files = [
        file
        for folder in ("bus", "core", "plugins", "adapters", "channels")
        for file in ROOT.glob(f"{folder}/**/*.py")
    ]
    found = [file.relative_to(ROOT).as_posix() for file in files if own.search(file.read_text())]
    assert found == ["bus/trunkline_bus/trace.py"]
