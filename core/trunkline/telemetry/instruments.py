"""Records measurements in OpenTelemetry's instruments. Uses the API only, so without an exporter the cost is small."""

from collections.abc import Callable
from typing import Any

from opentelemetry.metrics import Meter

from trunkline.telemetry.semconv import MetricSpec
from trunkline.telemetry.turn_metrics import Attributes


class Instruments:
    """The instruments of a meter. Each is created when it is first used."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._made: dict[MetricSpec, Callable[[float, Attributes], Any]] = {}

    def add(self, measure: MetricSpec, value: float, attributes: Attributes) -> None:
        """Add ``value`` to the counter, record it in the histogram, or set the gauge to it. Omits empty attributes."""
        if measure not in self._made:
            self._made[measure] = _made(self._meter, measure)
        self._made[measure](value, {key: text for key, text in attributes.items() if text})


def _made(meter: Meter, measure: MetricSpec) -> Callable[[float, Attributes], Any]:
    if measure.kind == "counter":
        return meter.create_counter(measure.name, measure.unit, measure.doc).add
    if measure.kind == "gauge":
        return meter.create_gauge(measure.name, measure.unit, measure.doc).set
    return meter.create_histogram(
        measure.name, measure.unit, measure.doc, explicit_bucket_boundaries_advisory=measure.bounds
    ).record
