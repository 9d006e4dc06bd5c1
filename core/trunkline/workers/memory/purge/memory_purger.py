"""Purges the data that memory itself derived from a text. Lines of the audit log lose their content, and chunks of the
conversation are removed. No I/O.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import unquote

import msgspec

from trunkline.contracts.audit.messages import AuditEntry
from trunkline.contracts.blocks.paths import block_folder
from trunkline.contracts.memory.chunk_files import parse_chunk_path
from trunkline.contracts.memory.purge import PURGED
from trunkline.contracts.memory.purger import Purge, Purger

_ENTRY = msgspec.json.Decoder(AuditEntry)


class MemoryPurger(Purger):
    """Purges the audit log and chunks. Each purge needs its own instance."""

    name = "memory"

    def __init__(self) -> None:
        self._lines: dict[bytes, bytes] = {}
        self._paths: dict[str, str] | None = None

    def without(self, path: str, data: bytes, purge: Purge) -> bytes | None:
        """Return a file of the audit log without the content of the purged conversations' lines, None for a chunk of
        such a conversation, and otherwise ``data``.
        """
        if path.startswith("audit/") and path.endswith(".jsonl"):
            return b"\n".join(self._line(line, purge) for line in data.split(b"\n"))
        if parse_chunk_path(path) is not None:
            return None if _chunk_conversation(data) in purge.conversations else data
        return data

    def _line(self, line: bytes, purge: Purge) -> bytes:
        """Return one line after the purge. Results are cached, because the versions of a file repeat its lines."""
        if line not in self._lines:
            if self._paths is None:
                plain = map(_normalized, purge.paths)
                self._paths = {path: path.rpartition("/")[2] for path in plain}
            self._lines[line] = _without_content(line, purge, self._paths)
        return self._lines[line]


class _Metadata(msgspec.Struct):
    conversation_id: str | None = None


class _ChunkFields(msgspec.Struct):
    metadata: _Metadata


def _chunk_conversation(data: bytes) -> str | None:
    """Return the conversation of a chunk, whatever layer the chunk is in."""
    try:
        return msgspec.json.decode(data, type=_ChunkFields).metadata.conversation_id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _without_content(line: bytes, purge: Purge, paths: Mapping[str, str]) -> bytes:
    """Return a line without the arguments and output of its call, if the line belongs to the purge.

    The line keeps that the call was made, by whom and when, how it was decided, and how it ended.
    """
    try:
        entry = _ENTRY.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return line
    if entry.conversation not in purge.conversations and not _mentions(entry, paths):
        return line
    left = msgspec.structs.replace(
        entry,
        why=PURGED if entry.why else "",
        arguments=None if entry.arguments is None else dict.fromkeys(entry.arguments, PURGED),
        output=PURGED if entry.output else "",
    )
    return msgspec.json.encode(left)


def _mentions(entry: AuditEntry, paths: Mapping[str, str]) -> bool:
    """Report whether a call's arguments, output or reason name one of the files by its path from the memory root or
    from the block.

    The comparison ignores case and finds a path within other words. A longer path in another folder is another file.
    """
    said = "\n".join((*(entry.arguments or {}).values(), entry.output, entry.why))
    if not said.strip():
        return False
    said, own = _normalized(unquote(said)), f"{block_folder(_normalized(entry.block))}/"
    return any(
        re.search(rf"(?:(?<![\w./-])/?|(?<=/memory/)){re.escape(name)}(?![\w-])(?!\.\w)", said)
        for path, last in paths.items()
        if last in said
        for name in ((path, path.removeprefix(own)) if path.startswith(own) else (path,))
    )


def _normalized(text: str) -> str:
    """Return the text in one form of case, Unicode composition and slashes."""
    return re.sub(r"(?:/(?:\./)*)+", "/", unicodedata.normalize("NFC", text).casefold().replace("\\", "/"))


def combined_filter(purgers: Sequence[Purger]) -> Callable[[str, bytes, Purge], bytes | None]:
    """Return the filter that applies all purgers to a file, one after the other."""

    def left(path: str, data: bytes, purge: Purge) -> bytes | None:
        kept: bytes | None = data
        for purger in purgers:
            if kept is None:
                return None
            kept = purger.without(path, kept, purge)
        return kept

    return left
