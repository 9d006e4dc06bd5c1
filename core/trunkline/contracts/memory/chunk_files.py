"""The name, path and format of a chunk's file. No I/O.

The path is ``<place>/chunks/YYYY-MM-DD/chunk-YYYY-MM-DD-<8 hex>.json``. The chunks of a day with very many are in
folders by their first and second digit, because git writes the whole list of a folder again for each new file. Archived
chunks are in ``chunks/archive/``.
"""

import json
import re
import secrets
from datetime import UTC, datetime
from typing import Any

import msgspec

from trunkline.contracts.memory.chunk import ChunkFile
from trunkline.contracts.memory.layers import is_no_layer

NAME = r"chunk-(\d{4}-\d{2}-\d{2})-([0-9a-f]{8})"
_ID = re.compile(NAME)
_PATH = re.compile(
    rf"(?:(?P<place>.+)/)?chunks/(?P<archive>archive/)?\d{{4}}-\d{{2}}-\d{{2}}/(?:[0-9a-f]/[0-9a-f]/)?(?P<id>{NAME})\.json"
)
CROWDED = 64
"""The number of chunks of one day above which further chunks are stored in folders by their digits."""


_decoder = msgspec.json.Decoder(ChunkFile)


class ChunkPath(msgspec.Struct, frozen=True):
    """The parts of a chunk's path: the folder before ``chunks/``, the id, and whether the chunk is archived."""

    place: str
    id: str
    archived: bool


def parse_chunk_path(path: str) -> ChunkPath | None:
    """Return the parts of a chunk's path; None for any other path."""
    if "chunk-" not in path:
        return None
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    return ChunkPath(found["place"] or "", found["id"], found["archive"] is not None)


def new_chunk_id(created: datetime) -> str:
    """Return a new id for a chunk of that day."""
    return f"chunk-{created.astimezone(UTC):%Y-%m-%d}-{secrets.token_hex(4)}"


def is_chunk_id(text: str) -> bool:
    """Report whether a text is a chunk's id."""
    return _ID.fullmatch(text) is not None


def day_folder(place: str, day: str, *, archived: bool = False) -> str:
    """Return the folder of a day (``YYYY-MM-DD``)."""
    middle = "chunks/archive" if archived else "chunks"
    return f"{place}/{middle}/{day}" if place else f"{middle}/{day}"


def chunk_path(place: str, chunk: str, *, archived: bool = False, crowded: bool = False) -> str:
    """Return the path of a chunk. ``crowded`` is True for a chunk in a folder by its digits. Raises ValueError for an
    invalid id.
    """
    found = _ID.fullmatch(chunk)
    if found is None:
        raise ValueError(chunk)
    folder = day_folder(place, found[1], archived=archived)
    return f"{folder}/{found[2][0]}/{found[2][1]}/{chunk}.json" if crowded else f"{folder}/{chunk}.json"


def archived_path(path: str) -> str:
    """Return the path of a chunk's file in the archive."""
    place, _, rest = path.rpartition("chunks/")
    return f"{place}chunks/archive/{rest}"


def restored_path(path: str) -> str:
    """Return the path of an archived chunk's file after it is restored."""
    place, _, rest = path.rpartition("chunks/archive/")
    return f"{place}chunks/{rest}"


def encode_chunk(chunk: ChunkFile) -> bytes:
    """Return the content of a chunk's file, with one key in each line, so that history and blame show which key
    changed.
    """
    data = msgspec.to_builtins(chunk)
    data["metadata"] = {key: value for key, value in data["metadata"].items() if _is_stored(key, value)}
    return (json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _is_stored(key: str, value: Any) -> bool:
    return value is not None and not (key == "fields" and not value)


def decode_chunk(path: str, data: bytes) -> ChunkFile | str:
    """Return the chunk in a file, or the code of the problem."""
    named = parse_chunk_path(path)
    try:
        chunk = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _repair(named, data)
    if named is None:
        return "missing_required_fields"
    return "invalid_scope" if is_no_layer(named.place) or chunk.id != named.id else _with_time_zones(chunk)


def _repair(named: ChunkPath | None, data: bytes) -> ChunkFile | str:
    """Return a chunk that another program or a person wrote in another form, or the code of the problem."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError):
        return "invalid_json"
    if not isinstance(raw, dict):
        return "invalid_record_type"
    if any(key not in raw for key in ("id", "content", "type")) or named is None:
        return "missing_required_fields"
    if is_no_layer(named.place) or raw["id"] != named.id:
        return "invalid_scope"
    try:
        return _with_time_zones(msgspec.convert(_with_defaults(raw, named.id), ChunkFile, strict=False))
    except (msgspec.ValidationError, RecursionError):
        return "invalid_record_type"


def _with_time_zones(chunk: ChunkFile) -> ChunkFile:
    """Return the chunk with times that can be compared. A time without a zone is in UTC."""
    known = chunk.metadata
    times = {name: getattr(known, name) for name in ("created_at", "modified_at", "expires_at")}
    bare = {name: at.replace(tzinfo=UTC) for name, at in times.items() if at and at.tzinfo is None}
    if not bare:
        return chunk
    return msgspec.structs.replace(chunk, metadata=msgspec.structs.replace(known, **bare))


def _with_defaults(raw: dict[str, Any], chunk: str) -> dict[str, Any]:
    """Return the fields with defaults for those that another program or a person may leave out."""
    metadata = raw.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    created = metadata.get("created_at") or metadata.get("created") or f"{chunk[6:16]}T00:00:00Z"
    metadata.setdefault("created_at", created)
    metadata.setdefault("modified_at", metadata["created_at"])
    links = raw.get("links")
    return {
        **raw,
        "metadata": metadata,
        "tokens": raw.get("tokens", len(str(raw["content"])) // 4),
        "links": links if isinstance(links, list) else [],
    }
