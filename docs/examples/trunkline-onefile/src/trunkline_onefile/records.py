"""A change of memory in its stored form. Plain data."""

from datetime import datetime

import msgspec


class MemoryRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of some files, with its author.

    ``files`` maps a path to its complete new content, or to None if the file is deleted.
    ``grown`` maps a path to the text that is appended to the file.
    """

    version: str
    time: datetime
    actor: str
    reason: str = ""
    conversation: str | None = None
    turn: str | None = None
    files: dict[str, bytes | None] = {}
    grown: dict[str, bytes] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """The changed paths."""
        return (*self.files, *self.grown)

    def encode(self) -> bytes:
        """Return the record as one line of JSON, without a line break."""
        return msgspec.json.encode(self)

    @staticmethod
    def decode(line: bytes | str) -> "MemoryRecord":
        """Decode a line of ``encode``. Raises msgspec.DecodeError."""
        return msgspec.json.decode(line, type=MemoryRecord)
