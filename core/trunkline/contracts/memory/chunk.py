"""Chunk: a small piece of what was said or learned, with a type, tags and links."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

Layer = Literal["project_agent", "project_global", "user_agent", "user_global"]
"""The layer that holds a chunk.

A *project* layer belongs to one block; a *user* layer belongs to the owner and applies to all blocks. An *agent* layer
is private to one actor; a *global* layer is open to all actors. If two layers hold a chunk with the same id, the layer
that comes first in this list takes precedence.
"""

Confidence = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
"""The confidence of a chunk, from 0 to 1."""

DEFAULT_CONFIDENCE = 0.7
"""The confidence of a chunk when the request gives none."""

DEFAULT_SOURCE = "interaction"
"""The ``source`` of a chunk when the request gives none."""


class ChunkLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link in a chunk's file. ``strength`` is from 0 to 1."""

    target_id: str
    type: str
    strength: Confidence = 1.0
    created_at: datetime


class ChunkMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a chunk and its confidence.

    ``source`` says how the chunk was made ("interaction", "learned", "import" ...). ``part`` and ``parts`` number the
    pieces of a text that was split; ``part`` counts from 1. No request returns the chunk after ``expires_at``.
    ``fields`` are the fields of a custom chunk type.
    """

    created_at: datetime
    modified_at: datetime
    confidence: Confidence = DEFAULT_CONFIDENCE
    source: str = DEFAULT_SOURCE
    conversation_id: str | None = None
    turn_id: str | None = None
    message_id: str | None = None
    actor: str | None = None
    part: int | None = None
    parts: int | None = None
    expires_at: datetime | None = None
    fields: dict[str, Any] = {}


class ChunkFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a chunk's file."""

    id: str
    content: str
    tokens: int
    type: str
    tags: tuple[str, ...] = ()
    metadata: ChunkMetadata
    links: tuple[ChunkLink, ...] = ()


class Chunk(ChunkFile, frozen=True, kw_only=True):
    """A chunk with its layer and path.

    ``accessed_at`` and ``access_count`` are stored in the cache only and are lost if the cache is deleted.
    """

    layer: Layer
    path: str
    archived: bool = False
    accessed_at: datetime | None = None
    access_count: int = 0
