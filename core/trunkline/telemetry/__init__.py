"""Traces, metrics and logs. Only ``setup`` and ``prometheus`` import the OpenTelemetry SDK."""
