"""Reads the progress of ``POST /api/pull`` and says what a person should see of it. No I/O in here."""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from trunkline.api.model import model_error
from trunkline_ollama.errors import from_stream_error

STEP = 10
"""Percent after which the progress is told again."""

SECONDS = 15.0
"""Seconds after which the progress is told again, so that a slow pull does not count as a silent model."""

SUCCESS = "success"
UNITS = ("B", "kB", "MB", "GB", "TB")


class _PullStatus(msgspec.Struct):
    status: str = ""
    digest: str = ""
    total: int | None = None
    completed: int | None = None
    error: Any = None


_status = msgspec.json.Decoder(_PullStatus)


class PullProgress:
    """The progress of one pull.

    Nothing is told before the first file has a size: only then is it certain that the model exists, and until then
    another model may answer in its place.
    """

    def __init__(self, model: str, key: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._model = model
        self._key = key
        self._clock = clock
        self._totals: dict[str, int] = {}
        self._completed: dict[str, int] = {}
        self._told_percent = -STEP
        self._told_at = 0.0
        self._told_status = ""
        self._done = False

    def feed(self, line: bytes) -> str:
        """Return the text to show for one line, "" for none.

        Raises:
            ModelError: the line reports a failure.
            msgspec.MsgspecError: the line cannot be read.
        """
        read = _status.decode(line)
        if read.error:
            error = from_stream_error(read.error, self._key, self._model)
            raise model_error("refused", f"{self._model} could not be pulled: {error.detail}")
        if read.status == SUCCESS:
            self._done = True
            return f"Pulled {self._model}.\n" if self._totals else ""
        if read.total:
            self._totals[read.digest] = read.total
            self._completed[read.digest] = read.completed or 0
            return self._told()
        if self._totals and read.status != self._told_status:
            self._told_status = read.status
            return f"Pulling {self._model}: {read.status}\n"
        return ""

    def finish(self) -> None:
        """Raise ModelError if the pull is not complete."""
        if not self._done:
            raise model_error("interrupted", f"the pull of {self._model} ended before it was complete")

    def _told(self) -> str:
        total = sum(self._totals.values())
        percent = 100 * sum(self._completed.values()) // total
        now = self._clock()
        if percent < self._told_percent + STEP and now < self._told_at + SECONDS:
            return ""
        self._told_percent, self._told_at = percent, now
        return f"Pulling {self._model}: {percent} % of {_size(total)}\n"


def _size(count: int) -> str:
    size = float(count)
    for unit in UNITS:
        if size < 1000 or unit == UNITS[-1]:
            break
        size /= 1000
    return f"{size:.3g} {unit}"
