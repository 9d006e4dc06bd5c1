"""Traces, metrics and logs. Only ``setup`` imports the OpenTelemetry SDK; everything else uses the API."""
