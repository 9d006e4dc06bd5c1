"""The settings of the OTLP collector, from OpenTelemetry's environment variables. Does not import the SDK."""

import os
from collections.abc import Mapping
from typing import Literal

Signal = Literal["traces", "metrics"]


def is_exported(signal: Signal, environ: Mapping[str, str] | None = None) -> bool:
    """Report whether the signal is exported to a collector.

    ``OTEL_EXPORTER_OTLP_ENDPOINT``, or the signal's ``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`` or
    ``..._METRICS_ENDPOINT``, names the collector. The signal is not exported without a collector, with
    ``OTEL_TRACES_EXPORTER`` or ``OTEL_METRICS_EXPORTER`` set to ``none``, or with ``OTEL_SDK_DISABLED`` set to
    ``true`` (OpenTelemetry specification, SDK environment variables).
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
    """Return the seconds between exports of metrics, from ``OTEL_METRIC_EXPORT_INTERVAL`` in milliseconds.

    The default is 60. A value that is not a number counts as unset.
    """
    variables = os.environ if environ is None else environ
    try:
        return float(variables.get("OTEL_METRIC_EXPORT_INTERVAL", "")) / 1000
    except ValueError:
        return 60.0
