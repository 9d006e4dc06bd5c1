"""Log to standard error: readable lines on a terminal, JSON lines elsewhere."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from trunkline.cli.log_format import RedactingFormatter, TerminalFormatter
from trunkline.cli.log_throttle import RepeatFilter

if TYPE_CHECKING:
    from trunkline.config import Config

TEXT_FORMAT = "%(asctime)s %(levelname)-7s %(message)s"

PLAIN_FORMAT = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}
"""The attributes of every record. All others were passed as ``extra``."""


NOISY_LOGGERS = ("httpx2",)
"""Loggers that log each request to a model at level info. Above level debug only their warnings are logged."""


@contextmanager
def set_up_logs(config: "Config", format: str = "auto") -> Iterator[None]:
    """Log from the configured level on, within the context. ``format`` is auto, json or text."""
    as_json = format == "json" or (format == "auto" and not sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonLinesFormatter(config=config)
        if as_json
        else TerminalFormatter(TEXT_FORMAT, "%H:%M:%S", config=config)
    )
    handler.addFilter(RepeatFilter(handler))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(config.settings.telemetry.log_level.upper())
    _hush(logging.WARNING if root.level > logging.DEBUG else logging.NOTSET)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        _hush(logging.NOTSET)


def _hush(level: int) -> None:
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(level)


class JsonLinesFormatter(RedactingFormatter):
    """Formats a record as one JSON object per line, without secrets, with the trace that the line belongs to."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_trace(),
            **{name: value for name, value in vars(record).items() if name not in PLAIN_FORMAT},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        plain = msgspec.to_builtins(line, enc_hook=str)
        return msgspec.json.encode({name: self._redacted(value) for name, value in plain.items()}).decode()

    def _redacted(self, value: Any) -> Any:
        """Redact the texts of a nested value. Numbers and booleans contain no secrets."""
        match value:
            case str():
                return self.redactor.redact(value)
            case dict():
                return {self._redacted(name): self._redacted(one) for name, one in value.items()}
            case list():
                return [self._redacted(one) for one in value]
        return value


def _trace() -> dict[str, str]:
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
