"""Chunks: one JSON file each, under ``chunks/`` of the whole memory or of a block. One passage, with all it knows."""

import re
from datetime import datetime

import msgspec

from trunkline.memory.index.passage import Link, Passage, micros
from trunkline.memory.index.plain import plain_passages

_CHUNK = re.compile(r"(?:blocks/[^/]+/)?chunks/.+\.json")


class _Link(msgspec.Struct, frozen=True):
    target_id: str
    type: str = "related_to"
    strength: float = 1.0


class _Metadata(msgspec.Struct, frozen=True):
    created_at: datetime | None = None
    confidence: float | None = 1.0
    conversation_id: str | None = None


class _Chunk(msgspec.Struct, frozen=True):
    id: str
    content: str
    type: str = "note"
    tags: tuple[str, ...] = ()
    metadata: _Metadata = _Metadata()
    links: tuple[_Link, ...] = ()


_chunk = msgspec.json.Decoder(_Chunk, strict=False)


def is_chunk(path: str) -> bool:
    """Whether a path is a chunk's."""
    return _CHUNK.fullmatch(path) is not None


def chunk_passages(path: str, data: bytes) -> list[Passage]:
    """The chunk; a file that is no chunk after all is a plain file, so that a person finds what is damaged in it."""
    try:
        chunk = _chunk.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return plain_passages(path, data)
    known = chunk.metadata
    return [
        Passage(
            1,
            chunk.content,
            kind="fact" if chunk.type == "fact" else "chunk",
            name=chunk.id,
            at=micros(known.created_at) if known.created_at else 0,
            confidence=1.0 if known.confidence is None else known.confidence,
            conversation=known.conversation_id or "",
            tags=tuple(dict.fromkeys(tag.casefold() for tag in chunk.tags)),
            links=tuple(
                Link(target=link.target_id, type=link.type, strength=link.strength) for link in chunk.links
            ),
        )
    ]
