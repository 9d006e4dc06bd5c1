"""Whether the bus has room for another message. A message is refused before the disk is full to its last block.

What is left then is for the journal of the messages that were accepted. Of a server that runs elsewhere the disk cannot
be seen; there the gateway learns from the server's own refusals.
"""

import shutil
from pathlib import Path

import anyio

RESERVED_BYTES = 8 * 1024 * 1024
"""Bytes of the bus's disk that no new message may touch."""

REFUSAL_SECONDS = 15.0
"""Seconds for which a server that refused counts as full, unless it stores something before."""


class BusDiskSpace:
    """The room on the bus. ``store`` is the folder of the embedded server, None when the server is another one's."""

    def __init__(self, store: Path | None) -> None:
        self._store = store
        self._refused_at = float("-inf")

    @property
    def is_full(self) -> bool:
        """Report whether a new message must be refused."""
        try:
            return self._store is not None and shutil.disk_usage(self._store).free < RESERVED_BYTES
        except FileNotFoundError:  # the server has made no folder yet
            return False

    @property
    def is_failing(self) -> bool:
        """Report whether it is full, or was a moment ago."""
        return self.is_full or anyio.current_time() - self._refused_at < REFUSAL_SECONDS

    def note_refusal(self) -> None:
        """The server said that it has no room."""
        self._refused_at = anyio.current_time()

    def note_success(self) -> None:
        """The server has stored something."""
        self._refused_at = float("-inf")
