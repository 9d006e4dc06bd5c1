"""Measurements in Prometheus' text form, by OpenTelemetry's exporter. Whoever imports this loads the SDK's metrics."""

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, generate_latest

from trunkline.telemetry.instruments import Instruments
from trunkline.telemetry.semconv import METRICS, MetricSpec
from trunkline.telemetry.turn_metrics import Attributes


class Exposition:
    """All that was measured so far; a gauge has its last value. Nothing of the process or its host is in it."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        reader = PrometheusMetricReader(
            disable_target_info=True, scope_info_enabled=False, registry=self._registry
        )
        provider = MeterProvider([reader], resource=Resource({}), shutdown_on_exit=False)
        self._instruments = Instruments(provider.get_meter("trunkline.gateway"))
        for measure in METRICS:
            if measure.plain:  # it is told as 0 before anything is counted, so that a rate has a beginning
                self.add(measure, 0, {})

    def add(self, measure: MetricSpec, value: float, attributes: Attributes) -> None:
        """Count ``value`` up, put it into the histogram, or make it the gauge's."""
        self._instruments.add(measure, value, attributes)

    def text(self) -> str:
        """Everything, in Prometheus' text form."""
        return generate_latest(self._registry).decode()
