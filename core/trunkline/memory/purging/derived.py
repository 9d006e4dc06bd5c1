"""What memory itself made of a text that is purged: the audit log's lines lose their content, and chunks of the
conversation go. Pure."""

from collections.abc import Callable, Sequence

import msgspec

from trunkline.abc.purging import Purge, Purger
from trunkline.memory.chunks.record import where
from trunkline.messages.audit import AuditEntry
from trunkline.messages.purging import PURGED

_ENTRY = msgspec.json.Decoder(AuditEntry)


class Derived(Purger):
    """The audit log, and chunks."""

    name = "memory"

    def __init__(self) -> None:
        self._lines: dict[bytes, bytes] = {}

    def without(self, path: str, data: bytes, purge: Purge) -> bytes | None:
        """A day of the audit log with the same lines, those of the conversations without content; no chunk that came of
        them."""
        if path.startswith("audit/") and path.endswith(".jsonl"):
            return b"\n".join(self._line(line, purge) for line in data.split(b"\n"))
        if where(path) is not None:
            return None if _said_in(data) in purge.conversations else data
        return data

    def _line(self, line: bytes, purge: Purge) -> bytes:
        """One line; versions of a day repeat them."""
        if line not in self._lines:
            self._lines[line] = _unworded(line, purge)
        return self._lines[line]


class _Metadata(msgspec.Struct):
    conversation_id: str | None = None


class _Chunk(msgspec.Struct):
    metadata: _Metadata


def _said_in(data: bytes) -> str | None:
    """The conversation that a chunk came of, wherever its file lies."""
    try:
        return msgspec.json.decode(data, type=_Chunk).metadata.conversation_id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _unworded(line: bytes, purge: Purge) -> bytes:
    """A line without what a call was given and gave, if it belongs to what is purged. That it was made, by whom,
    when, and how it was decided and ended, stays."""
    try:
        entry = _ENTRY.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return line
    if entry.conversation not in purge.conversations and not _names(entry, purge.paths):
        return line
    left = msgspec.structs.replace(
        entry,
        why=PURGED if entry.why else "",
        arguments=None if entry.arguments is None else dict.fromkeys(entry.arguments, PURGED),
        output=PURGED if entry.output else "",
    )
    return msgspec.json.encode(left)


def _names(entry: AuditEntry, paths: frozenset[str]) -> bool:
    """Whether a call was given one of these files by its path, as seen from the memory root or from its block."""
    given = {value.strip("/") for value in (entry.arguments or {}).values()}
    return any(value in paths or f"blocks/{entry.block}/{value}" in paths for value in given if value)


def without(purgers: Sequence[Purger]) -> Callable[[str, bytes, Purge], bytes | None]:
    """What all of them leave of a file, one after the other."""

    def left(path: str, data: bytes, purge: Purge) -> bytes | None:
        kept: bytes | None = data
        for purger in purgers:
            if kept is None:
                return None
            kept = purger.without(path, kept, purge)
        return kept

    return left
