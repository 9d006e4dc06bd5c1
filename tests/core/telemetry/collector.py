"""An OTLP collector: a real HTTP server that decodes what exporters post, by OpenTelemetry's own protobuf messages."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

Attributes = dict[str, Any]


@dataclass(frozen=True)
class Span:
    resource: Attributes
    name: str
    trace: str
    id: str
    parent: str
    attributes: Attributes


@dataclass(frozen=True)
class Point:
    """One value of one metric; a histogram's is how often something was recorded."""

    resource: Attributes
    metric: str
    unit: str
    attributes: Attributes
    value: float
    bounds: tuple[float, ...] = ()


@dataclass
class Taken:
    """The received exports, in order."""

    address: str
    spans: list[Span] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def latest(self, metric: str, **attributes: str) -> list[Point]:
        """The newest point of each process and set of attributes; sums and histograms are cumulative."""
        wanted = attributes.items()
        found = {
            (str(point.resource), str(sorted(point.attributes.items()))): point
            for point in self.points
            if point.metric == metric and wanted <= point.attributes.items()
        }
        return list(found.values())

    def total(self, metric: str, **attributes: str) -> float:
        return sum(point.value for point in self.latest(metric, **attributes))


@contextmanager
def collector() -> Iterator[Taken]:
    """Run one on a free port of this machine."""
    taken = Taken("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            _take(taken, self.path, body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    taken.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _take(taken: Taken, path: str, body: bytes) -> None:
    taken.bodies.append(body)
    if path == "/v1/traces":
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            whose = _attributes(resource.resource.attributes)
            for scope in resource.scope_spans:
                taken.spans += [_span(whose, span) for span in scope.spans]
    elif path == "/v1/metrics":
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            whose = _attributes(resource.resource.attributes)
            for scope in resource.scope_metrics:
                taken.points += [point for metric in scope.metrics for point in _points(whose, metric)]


def _span(whose: Attributes, span: Any) -> Span:
    ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
    return Span(whose, span.name, *ids, _attributes(span.attributes))


def _points(whose: Attributes, metric: Any) -> Iterator[Point]:
    kind = metric.WhichOneof("data")
    for point in getattr(metric, kind).data_points:
        value = point.count if kind == "histogram" else point.as_double or point.as_int
        bounds = tuple(point.explicit_bounds) if kind == "histogram" else ()
        yield Point(whose, metric.name, metric.unit, _attributes(point.attributes), value, bounds)


def _attributes(pairs: Any) -> Attributes:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
