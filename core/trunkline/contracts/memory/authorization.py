"""AuthorizingTransport: checks which parts of memory a tool's request may reach, and filters the replies.

The checks use only the request, so they hold for a tool in this process and for an isolated plugin, whatever that
plugin writes into its requests. An operation that a tool may not call, and an operation whose reply has no filter here,
is refused.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from trunkline.contracts.blocks.messages import BlockConfig, MemoryPolicy
from trunkline.contracts.blocks.paths import BLOCKS_FOLDER, block_file_path
from trunkline.contracts.memory.chunks import (
    MEMORY_CHUNK,
    MEMORY_CHUNKS,
    MEMORY_FORGET,
    MEMORY_LINK,
    MEMORY_LINKED,
    MEMORY_RECALL,
    MEMORY_REMEMBER,
    MEMORY_UPDATE_CHUNK,
    Chunk,
    ChunkFound,
    ChunkPage,
    ChunksLinked,
    FindLinked,
    ForgetChunk,
    GetChunk,
    Layer,
    LinkChunks,
    ListChunks,
    Recall,
    RecalledChunk,
    RecallResult,
    Remember,
    RememberResult,
    UpdateChunk,
)
from trunkline.contracts.memory.learned_visibility import (
    Recipient,
    is_chunk_withheld,
    is_withheld,
    may_hold_learned,
)
from trunkline.contracts.memory.messages import (
    MEMORY_BLAME,
    MEMORY_DIFF,
    MEMORY_HISTORY,
    MEMORY_LIST,
    MEMORY_READ,
    MEMORY_READ_MANY,
    MEMORY_SEARCH,
    BlameMemory,
    DiffMemory,
    FileDifference,
    ListMemory,
    MemoryBlame,
    MemoryChanged,
    MemoryChanges,
    MemoryDifference,
    MemoryFile,
    MemoryHistory,
    MemoryHit,
    MemoryHits,
    MemoryImport,
    MemoryListing,
    ReadManyMemory,
    ReadMemory,
    SearchMemory,
)
from trunkline.contracts.memory.operation import MemoryOperation
from trunkline.contracts.memory.paths import (
    is_chunk_path,
    is_owner_only,
    is_private_to_another,
    layer_folder,
    path_in_block,
)
from trunkline.contracts.memory.transport import Transport
from trunkline.errors import ToolError
from trunkline_bus import RemoteFault

Action = Literal["read", "write"]

AccessCheck = Callable[[str, Action, bool], Awaitable[None]]
"""Raises ToolError if a path of memory may not be read or written. With True it also raises if anything below the path
may not be.
"""

Q = TypeVar("Q", bound=msgspec.Struct)
A = TypeVar("A")

MOST_HITS = 100
MOST_CHUNKS = 1_000
"""The number of chunks that are requested if some of the found chunks may not be shown."""


async def allow_all(path: str, action: Action, whole: bool) -> None:
    """Allow everything."""


class AuthorizingTransport:
    """Sends the permitted requests of one actor in one block through ``sender``.

    Every request gets this ``block`` and ``actor``, whatever it contained. ``check_access`` decides about paths.
    ``recipient`` is who sees the replies: what was learned from another person or in another block is withheld. With
    None nothing is withheld, and the caller must decide what to show.
    """

    def __init__(
        self,
        sender: Transport,
        block: str,
        actor: str,
        *,
        conversation: str = "",
        check_access: AccessCheck = allow_all,
        recipient: Recipient | None = None,
    ) -> None:
        self.check_access = check_access
        self._sender = sender
        self._block = block
        self._actor = actor
        self._conversation = conversation
        self._recipient = recipient
        self._own: Mapping[type, Callable[[Any], Awaitable[Any]]] = MappingProxyType(
            {
                ReadMemory: self._read, SearchMemory: self._search, ListMemory: self._list,
                MemoryHistory: self._history, BlameMemory: self._blame, DiffMemory: self._diff,
                Remember: self._remember, Recall: self._recall, GetChunk: self._chunk, ListChunks: self._chunks,
                FindLinked: self._linked, LinkChunks: self._link, UpdateChunk: self._update, ForgetChunk: self._forget,
            }
        )  # fmt: skip

    async def call(self, operation: MemoryOperation[Q, A], request: Q) -> A:
        """Check a request, send it, and filter the reply. Raises ToolError ``permission_denied``."""
        if operation.scope is None:
            raise ToolError(
                f"{operation.name} is no operation that a tool may call.", kind="permission_denied"
            )
        own = self._own.get(type(request))
        if own is not None:
            reply: A = await own(self._identified(request))
            return reply
        if operation.scope == "reply" or (operation.scope == "tree" and not operation.changes):
            raise ToolError(
                f"Nothing decides what a tool may see of {operation.name}.", kind="permission_denied"
            )
        path = getattr(request, "path", None)
        if not isinstance(path, str):
            raise ToolError(f"{operation.name} names no path to be checked.", kind="permission_denied")
        if not operation.changes and self._recipient is not None and may_hold_learned(path):
            raise ToolError(_ELSEWHERE.format(self._name(path)), kind="permission_denied")
        return await self._send(operation, self._identified(request))

    async def export(self, target: Path) -> int:
        """Export memory. Only for an actor that may read everything."""
        await self.check_access("/", "read", True)
        return await self._sender.export(target)

    async def bring_in(self, source: Path, *, kind: str | None, dry_run: bool) -> MemoryImport:
        """Import an archive. Only for an actor that may write everything."""
        await self.check_access("/", "write", True)
        return await self._sender.bring_in(source, kind=kind, dry_run=dry_run)

    # Files ---------------------------------------------------------------------------------------------------

    async def _read(self, request: ReadMemory) -> MemoryFile:
        file = await self._send(MEMORY_READ, request)
        if self._recipient is not None and is_withheld(file.path, file.content, self._recipient):
            raise ToolError(_ELSEWHERE.format(self._name(request.path)), kind="permission_denied")
        return file

    async def _search(self, request: SearchMemory) -> MemoryHits:
        self._check_private(request.path)
        found = await self._sender.call(MEMORY_SEARCH, request)
        hits = await self._shown_hits(found.hits)
        if (
            len(hits) < len(found.hits) and request.limit < MOST_HITS
        ):  # further hits may replace those left out
            more = await self._sender.call(MEMORY_SEARCH, replace(request, limit=MOST_HITS))
            hits = (await self._shown_hits(more.hits))[: request.limit]
        return replace(found, hits=tuple(hits))

    async def _list(self, request: ListMemory) -> MemoryListing:
        """Return the visible names. Entries that memory does not read are for guards only and are not returned."""
        self._check_private(request.path)
        found = (await self._sender.call(MEMORY_LIST, replace(request, unread=False))).entries
        return MemoryListing(entries=tuple([entry for entry in found if await self._visible(entry.path)]))

    async def _history(self, request: MemoryHistory) -> MemoryChanges:
        found = await self._send(MEMORY_HISTORY, request)
        to = self._recipient
        if to is None or not may_hold_learned(request.path):
            return found
        return MemoryChanges(
            changes=tuple(
                replace(one, previous=None) if is_withheld(request.path, one.previous or "", to) else one
                for one in found.changes
            )
        )

    async def _blame(self, request: BlameMemory) -> MemoryBlame:
        if self._recipient is not None and may_hold_learned(request.path):
            # A recipient that may not see the file may not see its lines.
            await self._read(ReadMemory(path=request.path, version=request.version))
        return await self._send(MEMORY_BLAME, request)

    async def _diff(self, request: DiffMemory) -> MemoryDifference:
        found = await self._send(MEMORY_DIFF, request)
        if self._recipient is not None and any(
            may_hold_learned(path) for file in found.files for path in _paths(file)
        ):
            raise ToolError(
                f"{self._name(request.path)} holds what was learned, which is compared by no tool.",
                kind="permission_denied",
            )
        return found

    async def _shown_hits(self, hits: Sequence[MemoryHit]) -> Sequence[MemoryHit]:
        """Return the hits that may be shown."""
        shown = [hit for hit in hits if await self._visible(hit.path)]
        to = self._recipient
        if to is None or not (paths := tuple({hit.path for hit in shown if may_hold_learned(hit.path)})):
            return shown
        files = (await self._sender.call(MEMORY_READ_MANY, ReadManyMemory(paths=paths))).files
        visible = {file.path for file in files if not is_withheld(file.path, file.content, to)}
        return [hit for hit in shown if hit.path not in paths or hit.path in visible]

    # Chunks --------------------------------------------------------------------------------------------------

    async def _remember(self, request: Remember) -> RememberResult:
        layer = await self._writable_layer(request.layer)
        conversation = request.conversation_id or self._conversation
        return await self._sender.call(
            MEMORY_REMEMBER, replace(request, layer=layer, conversation_id=conversation)
        )

    async def _recall(self, request: Recall) -> RecallResult:
        found = await self._sender.call(MEMORY_RECALL, request)
        shown = await self._shown_recalled(found.chunks)
        if len(shown) == len(found.chunks):
            return found
        more = await self._sender.call(MEMORY_RECALL, replace(request, max_results=MOST_CHUNKS))
        return _without_hidden(found, (await self._shown_recalled(more.chunks))[: request.max_results])

    async def _chunk(self, request: GetChunk) -> ChunkFound:
        found = await self._sender.call(MEMORY_CHUNK, request)
        return found if found.chunk is None or await self._may_show(found.chunk) else ChunkFound()

    async def _chunks(self, request: ListChunks) -> ChunkPage:
        found = await self._sender.call(MEMORY_CHUNKS, request)
        shown = await self._shown_chunks(found.chunks)
        if len(shown) < len(found.chunks):
            wide = replace(request, limit=MOST_CHUNKS, offset=0)
            more = (await self._sender.call(MEMORY_CHUNKS, wide)).chunks
            shown = (await self._shown_chunks(more))[request.offset : request.offset + request.limit]
        return ChunkPage(chunks=tuple(shown), total=len(shown))

    async def _linked(self, request: FindLinked) -> ChunksLinked:
        if not await self._is_unrestricted("read"):
            await self._require_chunk(request.id)
        found = (await self._sender.call(MEMORY_LINKED, request)).links
        return ChunksLinked(links=tuple([one for one in found if await self._may_show(one.chunk)]))

    async def _link(self, request: LinkChunks) -> MemoryChanged:
        await self._check_change(request.source_id)
        if not request.remove and not await self._is_unrestricted("read"):
            await self._require_chunk(request.target_id)
        return _version_only(await self._sender.call(MEMORY_LINK, request))

    async def _update(self, request: UpdateChunk) -> MemoryChanged:
        await self._check_change(request.id)
        return _version_only(await self._sender.call(MEMORY_UPDATE_CHUNK, request))

    async def _forget(self, request: ForgetChunk) -> MemoryChanged:
        await self._check_change(request.id)
        return _version_only(await self._sender.call(MEMORY_FORGET, request))

    async def _writable_layer(self, layer: Layer | None) -> Layer | None:
        """Return the layer to write to. If not every layer may be written, the default layer is resolved and checked.
        Raises ToolError.
        """
        if await self._is_unrestricted("write"):
            return layer
        named = layer or await self._first_layer()
        if named is not None:
            await self._check_layer(named)
        return named

    async def _check_layer(self, layer: Layer) -> None:
        """Raise ToolError if a new chunk may not be written to the layer."""
        chunks, today = f"/{layer_folder(layer, self._block, self._actor)}/chunks", datetime.now(UTC).date()
        await self.check_access(f"{chunks}/{today}/chunk-{today}-00000000.json", "write", False)

    async def _first_layer(self) -> Layer | None:
        """Return the layer that the block writes to by default. Raises ToolError if the block's settings cannot be
        read.
        """
        settings = block_file_path(self._block)
        await self.check_access(f"/{settings}", "read", False)
        try:
            file = await self._sender.call(MEMORY_READ, ReadMemory(path=settings))
            policy = msgspec.toml.decode(file.content, type=BlockConfig).memory
        except ToolError as error:
            if not isinstance(error.__cause__, RemoteFault):
                raise  # memory cannot be reached; only a block without settings has the default policy
            policy = MemoryPolicy()
        except msgspec.MsgspecError as error:
            raise ToolError(
                "The block's block.toml is not valid, so nothing is remembered.", kind="unsupported"
            ) from error
        return next(iter(policy.write_layers), None)

    async def _check_change(self, chunk: str) -> None:
        """Raise ToolError if the file of a chunk may not be written. If the chunk is not found, raise if any layer may
        not be written.
        """
        if await self._is_unrestricted("write"):
            return
        request = GetChunk(id=chunk, actor=self._actor, block=self._block, archived=True)
        found = (await self._sender.call(MEMORY_CHUNK, request)).chunk
        if found is not None:
            await self.check_access(f"/{found.path}", "write", False)
            return
        for layer in get_args(Layer):
            await self._check_layer(layer)

    async def _require_chunk(self, chunk: str) -> None:
        """Raise ToolError if there is no chunk of this id that may be shown."""
        if (await self._chunk(GetChunk(id=chunk, actor=self._actor, block=self._block))).chunk is None:
            raise ToolError(f"There is no chunk {chunk!r} here.", kind="not_found")

    async def _shown_chunks(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        return [chunk for chunk in chunks if await self._may_show(chunk)]

    async def _shown_recalled(self, found: Iterable[RecalledChunk]) -> tuple[RecalledChunk, ...]:
        return tuple([one for one in found if await self._may_show(one.chunk)])

    async def _may_show(self, chunk: Chunk) -> bool:
        """Report whether the recipient may be shown a chunk."""
        if self._recipient is not None and is_chunk_withheld(chunk.path, chunk.metadata, self._recipient):
            return False
        return await self._visible(chunk.path)

    # Paths and identity --------------------------------------------------------------------------------------

    def _identified(self, request: Q) -> Q:
        """Return the request with this block and this actor.

        The reason of a change becomes the message of its commit, which only memory writes, so it is removed.
        """
        forced = {"actor": self._actor, "block": self._block, "reason": ""}
        if isinstance(request, ForgetChunk):
            del forced["reason"]
        known = {name: value for name, value in forced.items() if name in request.__struct_fields__}
        return replace(request, **known)

    async def _send(self, operation: MemoryOperation[Q, A], request: Q) -> A:
        """Check the path of a request, then send the request."""
        path: str = getattr(request, "path", "")  # no path means all of memory
        if operation.changes:
            self._check_writable(path)
        else:
            self._check_private(path)
        await self.check_access(
            f"/{path}", "write" if operation.changes else "read", operation.scope != "file"
        )
        return await self._sender.call(operation, request)

    async def _visible(self, path: str) -> bool:
        """Report whether a path may be read."""
        if is_private_to_another(path, self._actor):
            return False
        try:
            await self.check_access(f"/{path}", "read", False)
        except ToolError:
            return False
        return True

    async def _is_unrestricted(self, action: Action) -> bool:
        """Report whether all of memory may be read or written, so that single files need no check."""
        try:
            await self.check_access("/", action, True)
        except ToolError:
            return False
        return True

    def _check_private(self, path: str) -> None:
        """Raise ToolError if a path is private to another actor."""
        if is_private_to_another(path, self._actor):
            raise ToolError(f"{self._name(path)} is private to another agent.", kind="permission_denied")

    def _check_writable(self, path: str) -> None:
        """Raise ToolError if a path is or contains a file that only the owner may change, so that no agent changes its
        own permissions.
        """
        self._check_private(path)
        parts = [part.casefold() for part in path.split("/") if part not in ("", ".")]
        holds_settings = not parts or (parts[0] in (BLOCKS_FOLDER, "archive") and len(parts) < 3)
        if is_owner_only(path) or holds_settings:
            raise ToolError(
                f"{self._name(path)} is the owner's to change: it says or holds what agents are allowed. "
                "Nothing was changed.",
                kind="permission_denied",
            )
        if is_chunk_path(path):
            raise ToolError(
                f"{self._name(path)} is kept as a chunk: use remember, link or forget. Nothing was changed.",
                kind="permission_denied",
            )

    def _name(self, path: str) -> str:
        """Return the path as the block names it."""
        return path_in_block(self._block, path)


_ELSEWHERE = "{} was learned of somebody else or in another block, and is shown only there."


def _paths(file: FileDifference) -> tuple[str, ...]:
    return (file.path,) if file.source is None else (file.path, file.source)


def _version_only(changed: MemoryChanged) -> MemoryChanged:
    """Return the reply to a change of a chunk without the chunk's path, because the caller named the chunk by
    its id.
    """
    return replace(changed, paths=())


def _without_hidden(found: RecallResult, shown: tuple[RecalledChunk, ...]) -> RecallResult:
    """Return the reply to a recall with the shown chunks only. Nothing in it reveals a chunk that may not be shown."""
    ids = tuple(one.chunk.id for one in shown)
    best = shown[0].chunk if shown else None
    return replace(
        found,
        answer=best.content if best else "",
        confidence=min(found.confidence, best.metadata.confidence) if best else 0.0,
        source_chunks=ids,
        traversal_path=ids,
        chunks=shown,
    )
