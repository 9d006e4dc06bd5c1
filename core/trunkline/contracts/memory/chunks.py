"""The messages of chunk operations. A chunk is a small piece of what was said or learned, with a type, tags and links.

``block`` names the block whose chunks a request concerns; None means the owner's chunks, which all blocks share.
``actor`` is who makes the request: history records it, and no other actor can read its private layers.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from trunkline.contracts.memory.messages import MemoryChanged, describe_search
from trunkline.contracts.memory.operation import change, query
from trunkline_bus import Payload

Layer = Literal["project_agent", "project_global", "user_agent", "user_global"]
"""The layer that holds a chunk.

A *project* layer belongs to one block; a *user* layer belongs to the owner and applies to all blocks. An *agent* layer
is private to one actor; a *global* layer is open to all actors. If two layers hold a chunk with the same id, the layer
that comes first in this list takes precedence.
"""

Confidence = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
"""The confidence of a chunk, from 0 to 1."""

ChunkLimit = Annotated[int, msgspec.Meta(ge=0, le=10_000)]

DEFAULT_CONFIDENCE = 0.7
"""The confidence of a chunk when the request gives none."""

DEFAULT_SOURCE = "interaction"
"""The ``source`` of a chunk when the request gives none."""

MIN_RECALL_CONFIDENCE = 0.5
"""The lowest confidence of a recalled chunk when the request gives none."""

DEFAULT_RECALL_LIMIT, DEFAULT_LINK_LIMIT, DEFAULT_PAGE_SIZE = 5, 50, 100
"""The number of chunks that a recall, a request for linked chunks, and a page return when the request gives none."""


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


class Remember(Payload, frozen=True, kw_only=True, tag="memory.remember.v1"):
    """Store a text as chunks of 100 to 800 tokens.

    Without ``chunk_type`` the type of each chunk is detected from its words. Without ``layer`` the chunks are stored in
    the first layer that the block's policy allows to write.
    """

    content: str
    actor: str
    conversation_id: str
    block: str | None = None
    tags: tuple[str, ...] = ()
    confidence: float = DEFAULT_CONFIDENCE
    chunk_type: str | None = None
    layer: Layer | None = None
    source: str = DEFAULT_SOURCE
    message_id: str | None = None
    expires_at: datetime | None = None
    fields: dict[str, Any] = {}


class RememberResult(Payload, frozen=True, kw_only=True, tag="memory.remembered.v1"):
    """The reply to ``Remember``: the ids of the stored chunks, in the order of the text.

    If the text is blank, nothing is stored and ``success`` is False.
    """

    success: bool
    chunk_ids: tuple[str, ...] = ()
    total_tokens: int = 0
    chunks_created: int = 0
    error: str | None = None
    version: str = ""


class Recall(Payload, frozen=True, kw_only=True, tag="memory.recall.v1"):
    """Find the chunks that answer a question, the best first. No model is called."""

    query: str
    actor: str
    block: str | None = None
    conversation_id: str | None = None
    max_results: ChunkLimit = DEFAULT_RECALL_LIMIT
    min_confidence: Confidence = MIN_RECALL_CONFIDENCE
    tags: tuple[str, ...] = ()
    chunk_type: str | None = None


class RecalledChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk that a recall found.

    ``score`` is the sum of the values of ``why``, times all values of ``factors``. The keys of ``why`` are signals
    (``phrase``, ``words``, ``tags``, ``like``, ``meaning``); the keys of ``factors`` are ``confidence``, ``age`` and
    ``date``.
    """

    chunk: Chunk
    score: float
    why: dict[str, float] = {}
    factors: dict[str, float] = {}


class RecallResult(Payload, frozen=True, kw_only=True, tag="memory.recalled.v1"):
    """The reply to ``Recall``. ``answer`` is the text of the best chunk; ``confidence`` (0 to 1) is the confidence in
    it and is 0 if nothing was found.

    ``source_chunks`` are the ids of the chunks that the answer is from. ``traversal_path`` are the ids of the chunks
    that were examined, in order. ``iterations_used`` and ``cost_usd`` are always 0, because a recall calls no model.
    ``vectors`` is the share (0 to 1) of passages that a search by meaning can find. It is None without an embedder;
    then the recall compared words only.
    """

    answer: str = ""
    confidence: float = 0.0
    source_chunks: tuple[str, ...] = ()
    traversal_path: tuple[str, ...] = ()
    iterations_used: int = 0
    cost_usd: float = 0.0
    chunks: tuple[RecalledChunk, ...] = ()
    vectors: float | None = None

    @property
    def searched(self) -> str:
        """A sentence that says how the search worked."""
        return describe_search(self.vectors)


class GetChunk(Payload, frozen=True, kw_only=True, tag="memory.chunk-get.v1"):
    """Get a chunk by its id. The request counts as an access. With ``archived`` an archived chunk is returned too."""

    id: str
    actor: str
    block: str | None = None
    archived: bool = False


class ChunkFound(Payload, frozen=True, kw_only=True, tag="memory.chunk.v1"):
    """The reply to ``GetChunk``. ``chunk`` is None if there is no such chunk, if its file is invalid, or if it is
    private to another actor.
    """

    chunk: Chunk | None = None


class ListChunks(Payload, frozen=True, kw_only=True, tag="memory.chunk-list.v1"):
    """List the chunks that have all of ``tags`` and match all other given fields, the newest first."""

    actor: str
    block: str | None = None
    tags: tuple[str, ...] = ()
    chunk_type: str | None = None
    conversation_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    layer: Layer | None = None
    archived: bool = False
    limit: ChunkLimit = DEFAULT_PAGE_SIZE
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0


class ChunkPage(Payload, frozen=True, kw_only=True, tag="memory.chunk-page.v1"):
    """The reply to ``ListChunks``. ``total`` is the number of all matching chunks, including those on other pages."""

    chunks: tuple[Chunk, ...] = ()
    total: int = 0


class FindLinked(Payload, frozen=True, kw_only=True, tag="memory.chunk-linked.v1"):
    """List the links of a chunk in both directions, the strongest first."""

    id: str
    actor: str
    block: str | None = None
    link_type: str | None = None
    limit: ChunkLimit = DEFAULT_LINK_LIMIT


class LinkedChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A link and the chunk at its other end.

    ``incoming`` is True if that chunk links to the requested chunk. ``automatic`` links are derived from conversation,
    time and tags; all other links were made by a request (``LinkChunks``).
    """

    type: str
    strength: float
    incoming: bool = False
    automatic: bool = False
    created_at: datetime
    chunk: Chunk


class ChunksLinked(Payload, frozen=True, kw_only=True, tag="memory.chunk-links.v1"):
    """The reply to ``FindLinked``: the links, the strongest first."""

    links: tuple[LinkedChunk, ...] = ()


class LinkChunks(Payload, frozen=True, kw_only=True, tag="memory.chunk-link.v1"):
    """Link one chunk to another. With ``remove`` such a link is removed."""

    source_id: str
    target_id: str
    link_type: str
    actor: str
    block: str | None = None
    strength: float = 1.0
    remove: bool = False


class UpdateChunk(Payload, frozen=True, kw_only=True, tag="memory.chunk-update.v1"):
    """Change the given fields of a chunk. A field that is None keeps its value. A new text is not split."""

    id: str
    actor: str
    block: str | None = None
    content: str | None = None
    tags: tuple[str, ...] | None = None
    confidence: float | None = None
    chunk_type: str | None = None
    fields: dict[str, Any] | None = None


class DeleteChunk(Payload, frozen=True, kw_only=True, tag="memory.chunk-delete.v1"):
    """Archive a chunk. Searches no longer find it; ``RestoreChunk`` reverses this."""

    id: str
    actor: str
    block: str | None = None


class RestoreChunk(Payload, frozen=True, kw_only=True, tag="memory.chunk-restore.v1"):
    """Move a chunk from the archive back to its former path."""

    id: str
    actor: str
    block: str | None = None


class ForgetChunk(Payload, frozen=True, kw_only=True, tag="memory.chunk-forget.v1"):
    """Delete a chunk, archived or not, from the files and the indexes. History keeps the text until a purge."""

    id: str
    actor: str
    block: str | None = None
    reason: str = ""


class PruneChunks(Payload, frozen=True, kw_only=True, tag="memory.chunk-prune.v1"):
    """Archive the chunks that have expired. With ``days`` also archive the chunks that were neither created nor
    accessed in that many days.
    """

    actor: str
    block: str | None = None
    days: Annotated[int, msgspec.Meta(ge=1)] | None = None
    dry_run: bool = False


class ChunksPruned(Payload, frozen=True, kw_only=True, tag="memory.chunk-pruned.v1"):
    """The reply to ``PruneChunks``: the archived chunks, or with ``dry_run`` the chunks that would be archived."""

    chunk_ids: tuple[str, ...] = ()
    version: str = ""


class CountChunks(Payload, frozen=True, kw_only=True, tag="memory.chunk-stats.v1"):
    """Count the chunks of one block and the owner's. ``block`` None counts all chunks of memory."""

    block: str | None = None


class BrokenChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A file in a folder of chunks that is not a valid chunk. ``code`` is ``invalid_json``, ``invalid_record_type``,
    ``missing_required_fields`` or ``invalid_scope``.
    """

    path: str
    code: str


class ChunkCounts(Payload, frozen=True, kw_only=True, tag="memory.chunk-counts.v1"):
    """The reply to ``CountChunks``. ``links`` counts only links that were made by a request."""

    total_chunks: int = 0
    archived_chunks: int = 0
    tokens: int = 0
    tags: int = 0
    links: int = 0
    by_type: dict[str, int] = {}
    by_layer: dict[str, int] = {}
    broken: tuple[BrokenChunk, ...] = ()


MEMORY_REMEMBER = change(
    "remember",
    Remember,
    RememberResult,
    "Store a text as chunks.",
    ("monitor", "tools", "operator"),
    scope="reply",
)
MEMORY_RECALL = query(
    "recall", Recall, RecallResult, "Chunks that answer a question, without a model.",
    ("monitor", "tools", "operator"), scope="reply",
)  # fmt: skip
MEMORY_CHUNK = query(
    "chunk-get", GetChunk, ChunkFound, "One chunk.", ("monitor", "tools", "operator"), scope="reply"
)
MEMORY_CHUNKS = query(
    "chunk-list", ListChunks, ChunkPage, "Chunks by tag, type, conversation or time.",
    ("monitor", "tools", "operator"), scope="reply",
)  # fmt: skip
MEMORY_LINKED = query(
    "chunk-linked", FindLinked, ChunksLinked, "The chunks that a chunk is linked with.",
    ("monitor", "tools", "operator"), scope="reply",
)  # fmt: skip
MEMORY_LINK = change(
    "chunk-link",
    LinkChunks,
    MemoryChanged,
    "Link two chunks.",
    ("monitor", "tools", "operator"),
    scope="reply",
)
MEMORY_UPDATE_CHUNK = change(
    "chunk-update",
    UpdateChunk,
    MemoryChanged,
    "Change a chunk.",
    ("monitor", "tools", "operator"),
    scope="reply",
)
MEMORY_DELETE_CHUNK = change("chunk-delete", DeleteChunk, MemoryChanged, "Archive a chunk.", ("operator",))
MEMORY_RESTORE_CHUNK = change(
    "chunk-restore", RestoreChunk, MemoryChanged, "Restore an archived chunk.", ("operator",)
)
MEMORY_FORGET = change(
    "chunk-forget", ForgetChunk, MemoryChanged, "Remove a chunk; history keeps it.",
    ("monitor", "tools", "operator"), scope="reply",
)  # fmt: skip
MEMORY_PRUNE = change(
    "chunk-prune",
    PruneChunks,
    ChunksPruned,
    "Archive old and expired chunks.",
    ("operator",),
    concurrency=1,
)
MEMORY_CHUNK_STATS = query("chunk-stats", CountChunks, ChunkCounts, "The number of chunks.", ("operator",))
