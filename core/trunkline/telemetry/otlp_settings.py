"""The OTLP collector, by OpenTelemetry's own variables. Reads the environment, loads nothing."""

import os
from collections.abc import Mapping
from typing import Literal

Signal = Literal["traces", "metrics"]


def is_exported(signal: Signal, environ: Mapping[str, str] | None = None) -> bool:
    """Report whether the signal is to be exported.

    ``OTEL_EXPORTER_OTLP_ENDPOINT``, or the signal's own ``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`` or
    ``..._METRICS_ENDPOINT``, names the collector. ``OTEL_TRACES_EXPORTER`` or ``OTEL_METRICS_EXPORTER`` may say
    ``none``, and ``OTEL_SDK_DISABLED`` ``true`` (OpenTelemetry specification, SDK environment variables).
    """
    variables = os.environ if environ is None else environ
    name = signal.upper()
    off = variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if off or variables.get(f"OTEL_{name}_EXPORTER", "").strip().lower() == "none":
        return False
    return bool(
        variables.get("OTEL_EXPORTER_OTLP_ENDPOINT") or variables.get(f"OTEL_EXPORTER_OTLP_{name}_ENDPOINT")
    )


def export_interval(environ: Mapping[str, str] | None = None) -> float:
    """Return the seconds between exports of metrics: ``OTEL_METRIC_EXPORT_INTERVAL``, 60 when that says nothing."""
    variables = os.environ if environ is None else environ
    try:
        return float(variables.get("OTEL_METRIC_EXPORT_INTERVAL", "")) / 1000
    except ValueError:
        return 60.0
