"""Where commands that own the terminal log: a file under the home folder, a JSON object a line."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING

from trunkline.cli.logs import JsonLines

if TYPE_CHECKING:
    from pathlib import Path

    from trunkline.config import Config

LARGEST, KEPT = 4 * 1024 * 1024, 2
"""How large a log file grows, in bytes, and how many older ones are kept."""


@contextmanager
def log_to_file(config: "Config", name: str) -> Iterator[None]:
    """Log to ``logs/<name>.log`` for the length of the block, and nowhere else.

    A file that cannot be written costs the log only: opening the home says what is wrong with it.
    """
    handler = _handler(config.home / "logs" / f"{name}.log")
    handler.setFormatter(JsonLines())
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


def _handler(path: "Path") -> logging.Handler:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return RotatingFileHandler(path, maxBytes=LARGEST, backupCount=KEPT, encoding="utf-8")
    except OSError:
        return logging.NullHandler()
