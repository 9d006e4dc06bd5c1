"""One change of memory, as it is stored. Plain data."""

from datetime import datetime

import msgspec


class MemoryRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What some files hold from then on, and who wanted it.

    ``files`` maps a path to its whole content, or to None when it is deleted; ``grown`` maps it to what was
    added at its end.
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
        """The paths that it changes."""
        return (*self.files, *self.grown)

    def encode(self) -> bytes:
        """Return the record as one line of JSON, without the line's end."""
        return msgspec.json.encode(self)

    @staticmethod
    def decode(line: bytes | str) -> "MemoryRecord":
        """Return the record that ``encode`` made a line of. Raises msgspec.DecodeError."""
        return msgspec.json.decode(line, type=MemoryRecord)
