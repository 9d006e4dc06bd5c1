"""One change of a memory that is kept as a log: what ``LogStore`` keeps and gets back. Plain data."""

from datetime import datetime

import msgspec


class MemoryRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What some files hold from then on, and who wanted it.

    ``files`` maps a path to its whole content, or to None when it is gone; ``grown`` to what was added at its end.
    """

    version: str
    time: datetime
    actor: str
    reason: str = ""
    conversation: str | None = None
    turn: str | None = None
    files: dict[str, bytes | None] = {}
    grown: dict[str, bytes] = {}

    def encode(self) -> bytes:
        """The record as one line of JSON, without the line's end."""
        return msgspec.json.encode(self)

    @staticmethod
    def decode(line: bytes | str) -> "MemoryRecord":
        """The record that ``encode`` made a line of. Raises msgspec.DecodeError."""
        return msgspec.json.decode(line, type=MemoryRecord)
