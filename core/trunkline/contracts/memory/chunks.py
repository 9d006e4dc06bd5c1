"""Chunks: small pieces of what was said or learned, with type, tags and links.

``block`` says whose memory is meant: that of a block, or with None the owner's own, which all blocks share.
``actor`` is who asks: history names it, and its private layers are open to it alone.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from trunkline.contracts.memory.messages import MemoryChanged, describe_search
from trunkline.contracts.memory.operation import change, query
from trunkline_bus import Payload

Layer = Literal["project_agent", "project_global", "user_agent", "user_global"]
"""Where a chunk belongs. *project* is one block, *user* is the owner and so every block; *agent* is private to one
actor, *global* is open to all. In this order the same id in two layers is settled: the first one counts."""

Confidence = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
"""How sure a chunk is, from 0 to 1."""

ChunkLimit = Annotated[int, msgspec.Meta(ge=0, le=10_000)]

DEFAULT_CONFIDENCE = 0.7
"""How sure a chunk is when nobody says."""

DEFAULT_SOURCE = "interaction"
"""How a chunk came about when nobody says."""

MIN_RECALL_CONFIDENCE = 0.5
"""How sure a chunk must be to answer a question, when nobody says."""

DEFAULT_RECALL_LIMIT, DEFAULT_LINK_LIMIT, DEFAULT_PAGE_SIZE = 5, 50, 100
"""How many chunks answer a question, are told as linked, and are listed, when nobody says."""


class ChunkLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link as a chunk's file holds it. ``strength`` is from 0 to 1."""

    target_id: str
    type: str
    strength: Confidence = 1.0
    created_at: datetime


class ChunkMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Where a chunk comes from and how far to trust it.

    ``source`` says how it came about ("interaction", "learned", "import" ...). ``part`` and ``parts`` count the pieces
    of a text that was cut. After ``expires_at`` nobody is shown it. ``fields`` are those of a custom type.
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
    """A chunk with where it lies. ``accessed_at`` and ``access_count`` come from the cache and may be lost with it."""

    layer: Layer
    path: str
    archived: bool = False
    accessed_at: datetime | None = None
    access_count: int = 0


class Remember(Payload, frozen=True, kw_only=True, tag="memory.remember.v1"):
    """Keep a text: cut into chunks of 100 to 800 tokens, typed by its words unless ``chunk_type`` says more.

    ``layer`` is by default the first one that the block's policy lets be written.
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
    """The chunks that were kept, in the order of the text. Blank text is no success, and nothing is kept."""

    success: bool
    chunk_ids: tuple[str, ...] = ()
    total_tokens: int = 0
    chunks_created: int = 0
    error: str | None = None
    version: str = ""


class Recall(Payload, frozen=True, kw_only=True, tag="memory.recall.v1"):
    """Look for chunks that answer a question, best first. No model is asked."""

    query: str
    actor: str
    block: str | None = None
    conversation_id: str | None = None
    max_results: ChunkLimit = DEFAULT_RECALL_LIMIT
    min_confidence: Confidence = MIN_RECALL_CONFIDENCE
    tags: tuple[str, ...] = ()
    chunk_type: str | None = None


class RecalledChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk that was found. Its ``score`` is the sum of ``why``, what each signal gave (``phrase``, ``words``,
    ``tags``, ``like``, ``meaning``), times all ``factors`` (``confidence``, ``age``, ``date``)."""

    chunk: Chunk
    score: float
    why: dict[str, float] = {}
    factors: dict[str, float] = {}


class RecallResult(Payload, frozen=True, kw_only=True, tag="memory.recalled.v1"):
    """The best chunk's text as ``answer``, how sure (0 when nothing was found), and where it comes from.

    ``traversal_path`` are the ids that were looked at on the way, in order. ``iterations_used`` and ``cost_usd`` are of
    models, of which none was asked. ``vectors`` is the share of passages (0 to 1) that can be found by their meaning:
    None without an embedder, when words alone are searched.
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
        """The way of the search, as a sentence."""
        return describe_search(self.vectors)


class GetChunk(Payload, frozen=True, kw_only=True, tag="memory.chunk-get.v1"):
    """Ask for one chunk by its id; ``archived`` ones too when so wished. Counts as an access."""

    id: str
    actor: str
    block: str | None = None
    archived: bool = False


class ChunkFound(Payload, frozen=True, kw_only=True, tag="memory.chunk.v1"):
    """The chunk; None when there is none, or it is broken, or another's."""

    chunk: Chunk | None = None


class ListChunks(Payload, frozen=True, kw_only=True, tag="memory.chunk-list.v1"):
    """Ask for chunks that have all of ``tags`` and whatever else is given, newest first."""

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
    """Some of the chunks, and how many match in all."""

    chunks: tuple[Chunk, ...] = ()
    total: int = 0


class FindLinked(Payload, frozen=True, kw_only=True, tag="memory.chunk-linked.v1"):
    """Ask what a chunk is linked to, in both directions, strongest first."""

    id: str
    actor: str
    block: str | None = None
    link_type: str | None = None
    limit: ChunkLimit = DEFAULT_LINK_LIMIT


class LinkedChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A link and the chunk at its other end. ``incoming``: that chunk is the one that points here.

    ``automatic`` links are read off conversation, time and tags; the others somebody made.
    """

    type: str
    strength: float
    incoming: bool = False
    automatic: bool = False
    created_at: datetime
    chunk: Chunk


class ChunksLinked(Payload, frozen=True, kw_only=True, tag="memory.chunk-links.v1"):
    """The links, strongest first."""

    links: tuple[LinkedChunk, ...] = ()


class LinkChunks(Payload, frozen=True, kw_only=True, tag="memory.chunk-link.v1"):
    """Link one chunk to another by hand, or with ``remove`` take such a link out."""

    source_id: str
    target_id: str
    link_type: str
    actor: str
    block: str | None = None
    strength: float = 1.0
    remove: bool = False


class UpdateChunk(Payload, frozen=True, kw_only=True, tag="memory.chunk-update.v1"):
    """Change what is given of a chunk; its text is not cut anew."""

    id: str
    actor: str
    block: str | None = None
    content: str | None = None
    tags: tuple[str, ...] | None = None
    confidence: float | None = None
    chunk_type: str | None = None
    fields: dict[str, Any] | None = None


class DeleteChunk(Payload, frozen=True, kw_only=True, tag="memory.chunk-delete.v1"):
    """Archive a chunk. Searches no longer find it; "restore" brings it back."""

    id: str
    actor: str
    block: str | None = None


class RestoreChunk(Payload, frozen=True, kw_only=True, tag="memory.chunk-restore.v1"):
    """Take a chunk out of the archive, back to where it was."""

    id: str
    actor: str
    block: str | None = None


class ForgetChunk(Payload, frozen=True, kw_only=True, tag="memory.chunk-forget.v1"):
    """Take a chunk out of the files and the indexes, archived or not. History keeps it until a purge."""

    id: str
    actor: str
    block: str | None = None
    reason: str = ""


class PruneChunks(Payload, frozen=True, kw_only=True, tag="memory.chunk-prune.v1"):
    """Archive what has expired, and with ``days`` what was neither made nor used for so long."""

    actor: str
    block: str | None = None
    days: Annotated[int, msgspec.Meta(ge=1)] | None = None
    dry_run: bool = False


class ChunksPruned(Payload, frozen=True, kw_only=True, tag="memory.chunk-pruned.v1"):
    """The chunks that were archived, or would be."""

    chunk_ids: tuple[str, ...] = ()
    version: str = ""


class CountChunks(Payload, frozen=True, kw_only=True, tag="memory.chunk-stats.v1"):
    """Ask how many chunks there are, of one block with the owner's own, or with None of everybody."""

    block: str | None = None


class BrokenChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A file among the chunks that is none. ``code``: ``invalid_json``, ``invalid_record_type``,
    ``missing_required_fields`` or ``invalid_scope``."""

    path: str
    code: str


class ChunkCounts(Payload, frozen=True, kw_only=True, tag="memory.chunk-counts.v1"):
    """The counts. ``links`` are those made by hand."""

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
