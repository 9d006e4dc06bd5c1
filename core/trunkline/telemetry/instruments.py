"""Measurements into OpenTelemetry's instruments, by its API alone: who set up no exporter pays next to nothing."""

from collections.abc import Callable
from typing import Any

from opentelemetry.metrics import Meter

from trunkline.telemetry.semconv import MetricSpec
from trunkline.telemetry.turn_metrics import Attributes


class Instruments:
    """The instruments of a meter, made when they are first used."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._made: dict[MetricSpec, Callable[[float, Attributes], Any]] = {}

    def add(self, measure: MetricSpec, value: float, attributes: Attributes) -> None:
        """Count ``value`` up, put it into the histogram, or make it the gauge. An attribute that is "" is left out."""
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
