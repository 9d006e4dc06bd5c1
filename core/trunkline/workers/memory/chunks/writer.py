"""Changes chunks if the policy of their layer allows the change. Every change is an ordinary change of the store."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from trunkline.contracts.actors import OWNER
from trunkline.contracts.blocks.paths import BLOCKS_FOLDER
from trunkline.contracts.memory.chunk import ChunkFile, ChunkLink, ChunkMetadata
from trunkline.contracts.memory.chunk_files import (
    CROWDED,
    archived_path,
    chunk_path,
    day_folder,
    decode_chunk,
    encode_chunk,
    new_chunk_id,
    restored_path,
)
from trunkline.contracts.memory.chunk_index import ChunkLocation
from trunkline.contracts.memory.chunks import (
    ChunksPruned,
    DeleteChunk,
    ForgetChunk,
    LinkChunks,
    PruneChunks,
    Remember,
    RememberResult,
    RestoreChunk,
    UpdateChunk,
)
from trunkline.contracts.memory.files import MemoryChanged, MemoryEntry
from trunkline.contracts.memory.layers import LayerLocation, layer_of, writable_layer
from trunkline.contracts.memory.store import NOWHERE, Change, MemoryStore
from trunkline.workers.memory.chunks.block_policies import BlockPolicies
from trunkline.workers.memory.chunks.chunk_types import TypeRegistry, detect_type
from trunkline.workers.memory.chunks.reader import ChunkReader, chunk_not_found
from trunkline.workers.memory.chunks.splitter import TextPiece, TextSplitter
from trunkline_bus import Refusal, Scope

_log = logging.getLogger(__name__)

ATTEMPTS = 8
"""The maximum number of attempts at a change that conflicts with concurrent changes."""

THREAD_CHARACTERS = 20_000
"""The number of characters above which a text is split in a thread."""

PRUNE_SECONDS = 3_600.0
PLATFORM = "trunkline"
"""The actor of changes that no request asked for."""

MAX_TAGS, MAX_TAG_CHARACTERS = 32, 64
ChunkRequest = DeleteChunk | ForgetChunk | RestoreChunk | LinkChunks | UpdateChunk


_KNOWN_DAYS = 1_000
"""The maximum number of days whose number of chunks is cached."""


class ChunkWriter:
    """Changes the chunks of one store. ``clean`` redacts secrets in a text, ``now`` returns the time."""

    def __init__(
        self,
        store: MemoryStore,
        reader: ChunkReader,
        policies: BlockPolicies,
        kinds: TypeRegistry,
        clean: Callable[[str], str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._reader = reader
        self._policies = policies
        self._kinds = kinds
        self._clean = clean
        self._now = now
        self._splitter = TextSplitter(detect_type)
        self._days = DayFolders(lambda folder: store.list(folder, recursive=False))

    # Creating ------------------------------------------------------------------------------------------------

    async def remember(self, request: Remember, scope: Scope) -> RememberResult:
        """Store a text as chunks, in one commit.

        Raises:
            Refusal: ``invalid_value`` (no conversation, confidence out of range), ``invalid_type``,
                ``missing_required_fields``, ``invalid_fields``, ``forbidden`` (the layer), ``write_failure``.
        """
        self._validate(request)
        place = writable_layer(
            await self._policies.get(request.block), request.block, request.actor, request.layer
        )
        if not request.content.strip():
            return RememberResult(success=False, error="There is nothing to remember: the text is blank.")
        text = self._clean(request.content)
        pieces = await self._split(text, request.chunk_type)
        return await self._write(request, place, pieces, scope)

    def _validate(self, request: Remember) -> None:
        if not request.conversation_id.strip():
            raise Refusal("invalid_value", "Name the conversation of the text.")
        _check_confidence(request.confidence)
        _check_tags(request.tags)
        self._kinds.check_chunk_type(request.chunk_type or "note", request.fields)

    async def _split(self, text: str, kind: str | None) -> list[TextPiece]:
        if len(text) < THREAD_CHARACTERS and self._splitter.is_ready:
            return self._splitter.split(text, kind)
        return await anyio.to_thread.run_sync(self._splitter.split, text, kind)

    async def _write(
        self, request: Remember, place: LayerLocation, pieces: list[TextPiece], scope: Scope
    ) -> RememberResult:
        made = self._now()
        chunks = [
            self._chunk(request, piece, number, len(pieces), made, scope)
            for number, piece in enumerate(pieces)
        ]
        paths = [await self._days.path(place.folder, chunk.id) for chunk in chunks]
        files = {path: encode_chunk(chunk) for path, chunk in zip(paths, chunks, strict=True)}
        reason = f"Remember {chunks[0].id}" + (f" and {len(chunks) - 1} more" if len(chunks) > 1 else "")
        change = Change(dict[str, bytes | None](files), actor=request.actor, reason=reason, scope=scope)
        version = await self._store.change(change, expected=dict.fromkeys(paths, ""))
        return RememberResult(
            success=True,
            chunk_ids=tuple(chunk.id for chunk in chunks),
            total_tokens=sum(chunk.tokens for chunk in chunks),
            chunks_created=len(chunks),
            version=version,
        )

    def _chunk(
        self, request: Remember, piece: TextPiece, number: int, parts: int, made: datetime, scope: Scope
    ) -> ChunkFile:
        created = made + timedelta(microseconds=number)  # orders the pieces of a text
        return ChunkFile(
            id=new_chunk_id(created),
            content=piece.text,
            tokens=piece.tokens,
            type=piece.type,
            tags=_normalized_tags(request.tags),
            metadata=ChunkMetadata(
                created_at=created,
                modified_at=created,
                confidence=request.confidence,
                source=request.source,
                conversation_id=request.conversation_id,
                turn_id=scope.turn,
                message_id=request.message_id,
                actor=request.actor,
                part=number + 1 if parts > 1 else None,
                parts=parts if parts > 1 else None,
                expires_at=request.expires_at,
                fields=request.fields,
            ),
        )

    # Changing ------------------------------------------------------------------------------------------------

    async def update(self, request: UpdateChunk, scope: Scope) -> MemoryChanged:
        """Change the given fields of a chunk. Raises Refusal ``not_found``, ``forbidden``, or as ``remember``."""
        if request.confidence is not None:
            _check_confidence(request.confidence)
        if request.content is not None and not request.content.strip():
            raise Refusal("invalid_value", "A chunk cannot be blank; forget it instead.")
        _check_tags(request.tags or ())

        def changed(chunk: ChunkFile) -> ChunkFile:
            new = _updated(chunk, request, self._clean, self._now())
            self._kinds.check_chunk_type(new.type, new.metadata.fields)
            return msgspec.structs.replace(new, tokens=self._splitter.count(new.content))

        return await self._rewrite(request, f"Change {request.id}", changed, scope)

    async def link(self, request: LinkChunks, scope: Scope) -> MemoryChanged:
        """Link two chunks, or with ``remove`` remove the link. Linking again changes the strength."""
        self._kinds.check_link_type(request.link_type)
        if not 0 <= request.strength <= 1:
            raise Refusal("invalid_value", "The strength of a link is between 0 and 1.")
        if request.source_id == request.target_id:
            raise Refusal("invalid_value", "A chunk cannot be linked to itself.")
        if not request.remove:
            await self._reader.row(request.target_id, request.block, request.actor)
        reason = f"{'Unlink' if request.remove else 'Link'} {request.source_id} {request.link_type} {request.target_id}"
        return await self._rewrite(request, reason, lambda chunk: _linked(chunk, request, self._now()), scope)

    async def _rewrite(
        self,
        request: LinkChunks | UpdateChunk,
        reason: str,
        job: Callable[[ChunkFile], ChunkFile],
        scope: Scope,
    ) -> MemoryChanged:
        """Apply ``job`` to the present content of a chunk's file, and retry if the file changes in between."""
        row = await self._owned_chunk(
            request, request.source_id if isinstance(request, LinkChunks) else request.id
        )
        for attempt in range(ATTEMPTS):
            held = await self._store.read(row.path)
            chunk = decode_chunk(row.path, held.content.encode())
            if isinstance(chunk, str):
                raise chunk_not_found(row.id)
            change = Change(
                {row.path: encode_chunk(job(chunk))}, actor=request.actor, reason=reason, scope=scope
            )
            try:
                version = await self._store.change(change, expected={row.path: held.hash})
                return MemoryChanged(paths=(row.path,), version=version, actor=request.actor)
            except Refusal as refusal:
                if refusal.code != "write_conflict" or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("not reached")

    # Removing ------------------------------------------------------------------------------------------------

    async def delete(self, request: DeleteChunk, scope: Scope) -> MemoryChanged:
        """Move a chunk to the archive of its layer."""
        row = await self._owned_chunk(request, request.id)
        return await self._move(row, archived_path(row.path), request.actor, "Archive", scope)

    async def restore(self, request: RestoreChunk, scope: Scope) -> MemoryChanged:
        """Move a chunk from the archive back to its layer."""
        row = await self._owned_chunk(request, request.id, archived=True)
        return await self._move(row, restored_path(row.path), request.actor, "Restore", scope)

    async def _move(
        self, row: ChunkLocation, target: str, actor: str, verb: str, scope: Scope
    ) -> MemoryChanged:
        version = await self._store.move(
            row.path, target, actor=actor, reason=f"{verb} {row.id}", scope=scope
        )
        return MemoryChanged(paths=(row.path, target), version=version, actor=actor)

    async def forget(self, request: ForgetChunk, scope: Scope) -> MemoryChanged:
        """Delete a chunk's file, archived or not, and so remove the chunk from the indexes."""
        try:
            row = await self._owned_chunk(request, request.id)
        except Refusal as refusal:
            if refusal.code != "not_found":
                raise
            row = await self._owned_chunk(request, request.id, archived=True)
        reason = request.reason or f"Forget {row.id}"
        version = await self._store.delete(row.path, actor=request.actor, reason=reason, scope=scope)
        return MemoryChanged(paths=(row.path,), version=version, actor=request.actor)

    # Pruning -------------------------------------------------------------------------------------------------

    async def prune(self, request: PruneChunks, scope: Scope) -> ChunksPruned:
        """Archive the chunks that have expired, and those that were neither changed nor accessed for ``days``. The
        default is the policy's ``retention_days``.
        """
        days = request.days or (await self._policies.get(request.block)).retention_days
        found = await self._reader.stale(request.block, days)
        version = ""
        for row in () if request.dry_run else found:
            version = (
                await self._move(row, archived_path(row.path), request.actor, "Archive", scope)
            ).version
        return ChunksPruned(chunk_ids=tuple(row.id for row in found), version=version)

    async def run_pruning(self) -> None:
        """Prune all chunks every hour. Runs until it is cancelled."""
        while True:
            await anyio.sleep(PRUNE_SECONDS)
            try:
                await self.prune_all()
            except Refusal as refusal:
                _log.warning("chunks could not be pruned: %s", refusal.message)

    async def prune_all(self) -> None:
        """Prune the owner's chunks and those of every block. A block with an invalid policy is skipped."""
        entries = await self._store.list("", recursive=False)
        there = any(entry.path == BLOCKS_FOLDER and entry.kind == "folder" for entry in entries)
        folders = await self._store.list(BLOCKS_FOLDER, recursive=False) if there else ()
        for block in (None, *(entry.path.rpartition("/")[2] for entry in folders if entry.kind == "folder")):
            try:
                await self.prune(PruneChunks(actor=PLATFORM, block=block), NOWHERE)
            except Refusal as refusal:
                _log.warning("the chunks of block %s are not pruned: %s", block, refusal.message)

    async def _owned_chunk(
        self, request: ChunkRequest, chunk: str, *, archived: bool = False
    ) -> ChunkLocation:
        """Return the chunk's location if the actor may write to its layer. Raises Refusal ``not_found`` or
        ``forbidden``.
        """
        row = await self._reader.row(chunk, request.block, request.actor, archived=archived)
        if request.actor != OWNER:
            writable_layer(
                await self._policies.get(request.block), request.block, request.actor, layer_of(row.place)
            )
        return row


def _check_confidence(value: float) -> None:
    if not 0 <= value <= 1:
        raise Refusal("invalid_value", f"Confidence is between 0 and 1, not {value}.")


def _check_tags(tags: tuple[str, ...]) -> None:
    if len(tags) > MAX_TAGS or any(not tag.strip() or len(tag) > MAX_TAG_CHARACTERS for tag in tags):
        raise Refusal(
            "invalid_value", f"{MAX_TAGS} tags at most, each of 1 to {MAX_TAG_CHARACTERS} characters."
        )


def _normalized_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag.strip() for tag in tags))


def _updated(chunk: ChunkFile, request: UpdateChunk, clean: Callable[[str], str], now: datetime) -> ChunkFile:
    known: dict[str, Any] = {"modified_at": now}
    if request.confidence is not None:
        known["confidence"] = request.confidence
    if request.fields is not None:
        known["fields"] = request.fields
    return msgspec.structs.replace(
        chunk,
        content=chunk.content if request.content is None else clean(request.content).strip(),
        tags=chunk.tags if request.tags is None else _normalized_tags(request.tags),
        type=request.chunk_type or chunk.type,
        metadata=msgspec.structs.replace(chunk.metadata, **known),
    )


def _linked(chunk: ChunkFile, request: LinkChunks, now: datetime) -> ChunkFile:
    others = tuple(
        link for link in chunk.links if (link.target_id, link.type) != (request.target_id, request.link_type)
    )
    if request.remove and len(others) == len(chunk.links):
        raise Refusal(
            "not_found", f"{request.source_id} has no link {request.link_type} to {request.target_id}."
        )
    made = ChunkLink(
        target_id=request.target_id, type=request.link_type, strength=request.strength, created_at=now
    )
    return msgspec.structs.replace(chunk, links=others if request.remove else (*others, made))


Listing = Callable[[str], Awaitable[Sequence[MemoryEntry]]]


class DayFolders:
    """Counts the chunks of each day, and lists each folder only once. ``listing`` returns the entries of a folder."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._counts: dict[str, int] = {}

    async def path(self, place: str, chunk: str) -> str:
        """Return the path for a new chunk."""
        folder = day_folder(place, chunk[6:16])
        if folder not in self._counts:
            if len(self._counts) > _KNOWN_DAYS:
                self._counts.clear()
            # Another call may have counted in between.
            self._counts.setdefault(folder, await self._count(folder))
        self._counts[folder] += 1
        return chunk_path(place, chunk, crowded=self._counts[folder] > CROWDED)

    async def _count(self, folder: str) -> int:
        try:
            return len(await self._listing(folder))
        except Refusal:
            return 0
