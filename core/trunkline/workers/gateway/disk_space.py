"""The free disk space of the bus. New messages are refused before the disk is full.

The reserved space is for the journal of accepted messages. The disk of an external server cannot be measured; there the
gateway relies on the server's refusals.
"""

import shutil
from pathlib import Path

import anyio

RESERVED_BYTES = 8 * 1024 * 1024
"""Bytes of the bus's disk that are reserved: no new message may use them."""

REFUSAL_SECONDS = 15.0
"""Seconds for which a server that refused to store counts as full, unless it stores something earlier."""


class BusDiskSpace:
    """Reports whether the bus has room. ``store`` is the folder of the embedded server, None for an external
    server."""

    def __init__(self, store: Path | None) -> None:
        self._store = store
        self._refused_at = float("-inf")

    @property
    def is_full(self) -> bool:
        """Report whether a new message must be refused."""
        try:
            return self._store is not None and shutil.disk_usage(self._store).free < RESERVED_BYTES
        except FileNotFoundError:  # the server has not created its folder yet
            return False

    @property
    def is_failing(self) -> bool:
        """Report whether the disk is full, or the server refused to store within the last REFUSAL_SECONDS."""
        return self.is_full or anyio.current_time() - self._refused_at < REFUSAL_SECONDS

    def note_refusal(self) -> None:
        """Record that the server refused to store a message because it is full."""
        self._refused_at = anyio.current_time()

    def note_success(self) -> None:
        """Record that the server stored a message."""
        self._refused_at = float("-inf")
