"""Limits repeated log lines. Of the lines that one place in the code logs, a limited number is written; the others
are counted.
"""

import logging
from dataclasses import dataclass

MAX_LINES, WINDOW_SECONDS = 50, 10.0
"""Largest number of lines of one source within this many seconds."""

LogSource = tuple[str, str, int]


@dataclass(slots=True)
class _Burst:
    """The number of lines that one source logged since ``began``, and the last line that was left out."""

    began: float
    lines: int = 0
    last: logging.LogRecord | None = None

    @property
    def left_out(self) -> int:
        return max(0, self.lines - MAX_LINES)


class RepeatFilter(logging.Filter):
    """A filter for a handler. The number of omitted lines is logged with the first line after the time window. Lines
    of level debug are never omitted.
    """

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self._handler = handler
        self._spells: dict[LogSource, _Burst] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Report whether the line is written."""
        if record.levelno <= logging.DEBUG:
            return True
        self._end_spells(record.created)
        place = _place(record)
        spell = self._spells.setdefault(place, _Burst(record.created))
        spell.lines += 1
        if spell.lines > MAX_LINES:
            spell.last = record
        return spell.lines <= MAX_LINES

    def _end_spells(self, now: float) -> None:
        for place, spell in tuple(self._spells.items()):
            if 0 <= now - spell.began < WINDOW_SECONDS:
                continue
            self._spells.pop(place, None)
            if spell.last is not None:
                self._write(_summary(spell.last, spell.left_out))

    def _write(self, record: logging.LogRecord) -> None:
        self._handler.acquire()
        try:
            self._handler.emit(record)
        finally:
            self._handler.release()


def _place(record: logging.LogRecord) -> LogSource:
    """Return the source that a record counts for. All records of a plugin's process are one source, so a plugin neither
    uses up the lines of another nor logs more under many logger names."""
    plugin = getattr(record, "plugin", None)
    return (record.name, record.pathname, record.lineno) if plugin is None else (f"plugin {plugin}", "", 0)


def _summary(last: logging.LogRecord, left_out: int) -> logging.LogRecord:
    text = f"{left_out} more lines like this one in {WINDOW_SECONDS:g} s: {last.getMessage()}"
    return logging.LogRecord(last.name, last.levelno, last.pathname, last.lineno, text, None, None)
