"""The log file of commands that use the terminal: a file in the home folder, one JSON object per line."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

from trunkline._util.private_folders import make_private
from trunkline.cli.log_throttle import RepeatFilter
from trunkline.cli.logs import JsonLinesFormatter
from trunkline.contracts.retention import MEGABYTE

if TYPE_CHECKING:
    from trunkline.config import Config
    from trunkline.contracts.retention import Retention

DAY = 86_400.0


@contextmanager
def log_to_file(config: "Config", name: str) -> Iterator[None]:
    """Log to ``logs/<name>.log`` within the context, and nowhere else. ``[retention]`` limits the files.

    If the file cannot be written, nothing is logged. Opening the home reports the reason.
    """
    retention = config.settings.retention
    remove_old_logs(config.home / "logs", retention.log_days)
    handler = _handler(config.home / "logs" / f"{name}.log", retention)
    handler.setFormatter(JsonLinesFormatter(config=config))
    handler.addFilter(RepeatFilter(handler))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(config.settings.telemetry.log_level.upper())
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        handler.close()


def remove_old_logs(folder: Path, days: float) -> None:
    """Delete log files that were not written for this many days. Files that cannot be deleted are kept."""
    oldest = time.time() - days * DAY
    for path in folder.glob("*.log*"):
        with suppress(OSError):
            if path.is_file() and not path.is_symlink() and path.stat().st_mtime < oldest:
                path.unlink()


def _handler(path: Path, retention: "Retention") -> logging.Handler:
    size = int(retention.log_mb * MEGABYTE)
    try:
        make_private(path.parent)
        return RotatingFileHandler(path, maxBytes=size, backupCount=retention.log_files, encoding="utf-8")
    except OSError:
        return logging.NullHandler()
