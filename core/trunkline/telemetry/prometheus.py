"""Measurements in Prometheus' text format, by OpenTelemetry's exporter. Importing this module loads the SDK."""

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, generate_latest

from trunkline.telemetry.instruments import Instruments
from trunkline.telemetry.semconv import METRICS, MetricSpec
from trunkline.telemetry.turn_metrics import Attributes


class Exposition:
    """All measurements so far; a gauge has its last value. Contains no data about the process or its host."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        reader = PrometheusMetricReader(
            disable_target_info=True, scope_info_enabled=False, registry=self._registry
        )
        provider = MeterProvider([reader], resource=Resource({}), shutdown_on_exit=False)
        self._instruments = Instruments(provider.get_meter("trunkline.gateway"))
        for measure in METRICS:
            if measure.plain:  # reported as 0 before the first count, so that a rate can be computed
                self.add(measure, 0, {})

    def add(self, measure: MetricSpec, value: float, attributes: Attributes) -> None:
        """Add ``value`` to the counter, record it in the histogram, or set the gauge to it."""
        self._instruments.add(measure, value, attributes)

    def text(self) -> str:
        """Return all measurements in Prometheus' text format."""
        return generate_latest(self._registry).decode()
