"""The operations on chunks: remember, recall, get, list, link, update, archive and forget.

``block`` names the block whose chunks a request concerns; None means the owner's chunks, which all blocks share.
``actor`` is who makes the request: history records it, and no other actor can read its private layers.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, get_args

import msgspec
from msgspec.structs import replace

from trunkline.contracts.blocks.messages import BlockConfig, MemoryPolicy
from trunkline.contracts.blocks.paths import block_file_path
from trunkline.contracts.memory.access import CallerAccess
from trunkline.contracts.memory.chunk import (
    DEFAULT_CONFIDENCE,
    DEFAULT_SOURCE,
    Chunk,
    Confidence,
    Layer,
)
from trunkline.contracts.memory.files import MEMORY_READ, MemoryChanged, ReadMemory
from trunkline.contracts.memory.operation import change, query
from trunkline.contracts.memory.paths import layer_folder
from trunkline.contracts.memory.search import describe_search
from trunkline.errors import ToolError
from trunkline_bus import Payload

ChunkLimit = Annotated[int, msgspec.Meta(ge=0, le=10_000)]

MIN_RECALL_CONFIDENCE = 0.5
"""The lowest confidence of a recalled chunk when the request gives none."""

DEFAULT_RECALL_LIMIT, DEFAULT_LINK_LIMIT, DEFAULT_PAGE_SIZE = 5, 50, 100
"""The number of chunks that a recall, a request for linked chunks, and a page return when the request gives none."""

MAX_REPLACED_CHUNKS = 1_000
"""The number of chunks that are requested if some of the found chunks may not be shown."""


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


async def _check_remember(access: CallerAccess, request: Remember) -> Remember:
    layer = await _writable_layer(access, request.layer)
    return replace(request, layer=layer, conversation_id=request.conversation_id or access.conversation)


async def _check_link(access: CallerAccess, request: LinkChunks) -> LinkChunks:
    await _check_change(access, request.source_id)
    if not request.remove and not await access.is_unrestricted("read"):
        await _require_chunk(access, request.target_id)
    return request


async def _check_update(access: CallerAccess, request: UpdateChunk) -> UpdateChunk:
    await _check_change(access, request.id)
    return request


async def _check_forget(access: CallerAccess, request: ForgetChunk) -> ForgetChunk:
    await _check_change(access, request.id)
    return request


async def _check_linked(access: CallerAccess, request: FindLinked) -> FindLinked:
    if not await access.is_unrestricted("read"):
        await _require_chunk(access, request.id)
    return request


async def _shown_recall(access: CallerAccess, request: Recall, reply: RecallResult) -> RecallResult:
    shown = await _visible_recalled(access, reply.chunks)
    if len(shown) == len(reply.chunks):
        return reply
    more = await access.send(MEMORY_RECALL, replace(request, max_results=MAX_REPLACED_CHUNKS))
    return _without_hidden(reply, (await _visible_recalled(access, more.chunks))[: request.max_results])


async def _shown_chunk(access: CallerAccess, request: GetChunk, reply: ChunkFound) -> ChunkFound:
    return reply if reply.chunk is None or await _is_visible(access, reply.chunk) else ChunkFound()


async def _shown_page(access: CallerAccess, request: ListChunks, reply: ChunkPage) -> ChunkPage:
    """Return the page of the chunks that the caller may see: ``offset`` and ``total`` count no other chunks."""
    if await access.sees_all_chunks():
        return reply
    matching = reply.chunks if len(reply.chunks) == reply.total else await _all_matching(access, request)
    shown = await _visible_chunks(access, matching)
    return ChunkPage(chunks=tuple(shown[request.offset : request.offset + request.limit]), total=len(shown))


async def _all_matching(access: CallerAccess, request: ListChunks) -> Iterable[Chunk]:
    """Return the chunks of all pages. A chunk that is made meanwhile moves others to the next page, so that page may
    repeat them.
    """
    found: dict[str, Chunk] = {}
    offset, total = 0, 1
    while offset < total:
        page = await access.send(MEMORY_CHUNKS, replace(request, limit=MAX_REPLACED_CHUNKS, offset=offset))
        found |= {chunk.id: chunk for chunk in page.chunks}
        offset, total = offset + MAX_REPLACED_CHUNKS, page.total
    return found.values()


async def _shown_links(access: CallerAccess, request: FindLinked, reply: ChunksLinked) -> ChunksLinked:
    return ChunksLinked(links=tuple([one for one in reply.links if await _is_visible(access, one.chunk)]))


async def _version_only(access: CallerAccess, request: Payload, reply: MemoryChanged) -> MemoryChanged:
    """The reply does not tell the chunk's path, because the caller named the chunk by its id."""
    return replace(reply, paths=())


async def _is_visible(access: CallerAccess, chunk: Chunk) -> bool:
    """Report whether the caller may be shown a chunk."""
    return not access.withholds_chunk(chunk.path, chunk.metadata) and await access.is_visible(chunk.path)


async def _visible_chunks(access: CallerAccess, chunks: Iterable[Chunk]) -> list[Chunk]:
    return [chunk for chunk in chunks if await _is_visible(access, chunk)]


async def _visible_recalled(
    access: CallerAccess, chunks: Iterable[RecalledChunk]
) -> tuple[RecalledChunk, ...]:
    return tuple([one for one in chunks if await _is_visible(access, one.chunk)])


def _without_hidden(result: RecallResult, shown: tuple[RecalledChunk, ...]) -> RecallResult:
    """Return the reply to a recall with the shown chunks only. Nothing in it reveals a chunk that may not be shown."""
    ids = tuple(one.chunk.id for one in shown)
    best = shown[0].chunk if shown else None
    return replace(
        result,
        answer=best.content if best else "",
        confidence=min(result.confidence, best.metadata.confidence) if best else 0.0,
        source_chunks=ids,
        traversal_path=ids,
        chunks=shown,
    )


async def _writable_layer(access: CallerAccess, layer: Layer | None) -> Layer | None:
    """Return the layer to write to. If not every layer may be written, the default layer is resolved and checked.
    Raises ToolError.
    """
    if await access.is_unrestricted("write"):
        return layer
    named = layer or await _first_layer(access)
    if named is not None:
        await _check_layer(access, named)
    return named


async def _check_layer(access: CallerAccess, layer: Layer) -> None:
    """Raise ToolError if a new chunk may not be written to the layer."""
    chunks, today = f"/{layer_folder(layer, access.block, access.actor)}/chunks", datetime.now(UTC).date()
    await access.check_access(f"{chunks}/{today}/chunk-{today}-00000000.json", "write", False)


async def _first_layer(access: CallerAccess) -> Layer | None:
    """Return the layer that the block writes to by default. Raises ToolError if the block's settings cannot be
    read.
    """
    settings = block_file_path(access.block)
    await access.check_access(f"/{settings}", "read", False)
    try:
        file = await access.send(MEMORY_READ, ReadMemory(path=settings))
        policy = msgspec.toml.decode(file.content, type=BlockConfig).memory
    except ToolError as error:
        if error.kind != "not_found":
            raise  # only a block without settings has the default policy
        policy = MemoryPolicy()
    except msgspec.MsgspecError as error:
        raise ToolError(
            "The block's block.toml is not valid, so nothing is remembered.", kind="unsupported"
        ) from error
    return next(iter(policy.write_layers), None)


async def _check_change(access: CallerAccess, chunk: str) -> None:
    """Raise ToolError if the file of a chunk may not be written. If the chunk is not found, raise if any layer may
    not be written.
    """
    if await access.is_unrestricted("write"):
        return
    request = GetChunk(id=chunk, actor=access.actor, block=access.block, archived=True)
    found = (await access.send(MEMORY_CHUNK, request)).chunk
    if found is not None:
        await access.check_access(f"/{found.path}", "write", False)
        return
    for layer in get_args(Layer):
        await _check_layer(access, layer)


async def _require_chunk(access: CallerAccess, chunk: str) -> None:
    """Raise ToolError if there is no chunk of this id that may be shown."""
    request = GetChunk(id=chunk, actor=access.actor, block=access.block)
    found = (await access.send(MEMORY_CHUNK, request)).chunk
    if found is None or not await _is_visible(access, found):
        raise ToolError(f"There is no chunk {chunk!r} here.", kind="not_found")


MEMORY_REMEMBER = change(
    "remember", Remember, RememberResult, "Store a text as chunks.",
    ("monitor", "tools", "operator"), extent="reply", check=_check_remember,
)  # fmt: skip
MEMORY_RECALL = query(
    "recall", Recall, RecallResult, "Chunks that answer a question, without a model.",
    ("monitor", "tools", "operator"), extent="reply", filter=_shown_recall,
)  # fmt: skip
MEMORY_CHUNK = query(
    "chunk-get", GetChunk, ChunkFound, "One chunk.",
    ("gateway", "monitor", "tools", "operator"), extent="reply", filter=_shown_chunk,
)  # fmt: skip
MEMORY_CHUNKS = query(
    "chunk-list", ListChunks, ChunkPage, "Chunks by tag, type, conversation or time.",
    ("gateway", "monitor", "tools", "operator"), extent="reply", filter=_shown_page,
)  # fmt: skip
MEMORY_LINKED = query(
    "chunk-linked", FindLinked, ChunksLinked, "The chunks that a chunk is linked with.",
    ("gateway", "monitor", "tools", "operator"), extent="reply", check=_check_linked, filter=_shown_links,
)  # fmt: skip
MEMORY_LINK = change(
    "chunk-link", LinkChunks, MemoryChanged, "Link two chunks.",
    ("monitor", "tools", "operator"), extent="reply", check=_check_link, filter=_version_only,
)  # fmt: skip
MEMORY_UPDATE_CHUNK = change(
    "chunk-update", UpdateChunk, MemoryChanged, "Change a chunk.",
    ("monitor", "tools", "operator"), extent="reply", check=_check_update, filter=_version_only,
)  # fmt: skip
MEMORY_DELETE_CHUNK = change("chunk-delete", DeleteChunk, MemoryChanged, "Archive a chunk.", ("operator",))
MEMORY_RESTORE_CHUNK = change(
    "chunk-restore", RestoreChunk, MemoryChanged, "Restore an archived chunk.", ("operator",)
)
MEMORY_FORGET = change(
    "chunk-forget", ForgetChunk, MemoryChanged, "Remove a chunk; history keeps it.",
    ("gateway", "monitor", "tools", "operator"),
    extent="reply", check=_check_forget, filter=_version_only, keeps_reason=True,
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
