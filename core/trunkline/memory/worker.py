"""The memory worker: a store, served on the bus. Takes requests apart and answers them; decides nothing.

Every change that is committed is told to whoever listens (``MEMORY_CHANGED``), edits made by hand included.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import ClassVar, TypeVar

import anyio
import msgspec

from trunkline.abc.memory import Change, Installed, MemoryStore
from trunkline.errors import ConfigError
from trunkline.memory.auditing import AuditKeeper
from trunkline.memory.chunks.answering import ChunkAnswers, scope_of
from trunkline.memory.chunks.keeper import Keeper
from trunkline.memory.chunks.kinds import Kinds
from trunkline.memory.chunks.policies import Policies
from trunkline.memory.chunks.reader import Reader
from trunkline.memory.chunks.scanned import Scanned
from trunkline.memory.collected.answering import CollectionAnswers
from trunkline.memory.collected.collections import Collections
from trunkline.memory.conversations import names_of
from trunkline.memory.errand import outliving
from trunkline.memory.paths import checked
from trunkline.memory.store import GitMemoryStore
from trunkline.memory.vectors.choosing import chosen_embedder
from trunkline.memory.wishes import encoded
from trunkline.messages.conversation import (
    AppendConversation,
    ConversationAppended,
    ConversationFound,
    ConversationPage,
    ConversationSlice,
    FindConversation,
    ListConversations,
    LoadConversation,
)
from trunkline.messages.indexing import AskIndex, IndexProgress, IndexStats, RebuildIndex
from trunkline.messages.memory import (
    UNREADABLE,
    BlameMemory,
    DeleteMemory,
    DiffMemory,
    EditMemory,
    ExamineMemory,
    ExportMemory,
    ImportMemory,
    ImportProgress,
    ListMemory,
    MemoryBlame,
    MemoryChanged,
    MemoryChanges,
    MemoryDifference,
    MemoryExamined,
    MemoryExport,
    MemoryFile,
    MemoryFiles,
    MemoryHistory,
    MemoryHits,
    MemoryImport,
    MemoryListing,
    MemoryReverted,
    MoveMemory,
    ReadManyMemory,
    ReadMemory,
    RevertMemory,
    SearchMemory,
    WriteManyMemory,
    WriteMemory,
)
from trunkline.messages.workers import WorkerKind
from trunkline.redaction import Redaction
from trunkline.runtime.worker import Worker, WorkerContext
from trunkline.subjects import (
    EXPORTS,
    IMPORTS,
    MEMORY_APPEND_CONVERSATION,
    MEMORY_BLAME,
    MEMORY_CHANGED,
    MEMORY_DELETE,
    MEMORY_DIFF,
    MEMORY_EDIT,
    MEMORY_EXAMINE,
    MEMORY_EXPORT,
    MEMORY_FIND_CONVERSATION,
    MEMORY_HISTORY,
    MEMORY_IMPORT,
    MEMORY_INDEX_STATS,
    MEMORY_LIST,
    MEMORY_LIST_CONVERSATIONS,
    MEMORY_LOAD_CONVERSATION,
    MEMORY_MOVE,
    MEMORY_READ,
    MEMORY_READ_MANY,
    MEMORY_REINDEX,
    MEMORY_REVERT,
    MEMORY_SEARCH,
    MEMORY_WRITE,
    MEMORY_WRITE_MANY,
)
from trunkline_bus import BusError, Refusal, Request, new_id

_log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

NEVER = datetime.fromtimestamp(0, UTC)

DAY = 86_400.0

WRITERS = 512
"""How many changes may be waiting for their commit at once."""


class MemoryWorker(Worker):
    """Serves the memory endpoints of ``trunkline.subjects`` from one store."""

    kind: ClassVar[WorkerKind] = "memory"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._store = self._choose_store()
        self._store.installed = self._installed
        self._store.embedder = chosen_embedder(context.plugins, context.config.settings.memory.embedder)
        self._redaction = Redaction(context.config.settings.memory.redact)
        rules = (owned.item for owned in context.plugins.memory_rules())
        self._store.rules = (*rules, self._redaction)
        self._untold: deque[MemoryChanged] = deque()
        self._some_untold = anyio.Event()
        self._store.on_change = self._note

    def _choose_store(self) -> MemoryStore:
        settings = self.context.config.settings.memory
        if settings.store is None:
            return GitMemoryStore(window=settings.group_window, sync=settings.sync)
        for owned in self.context.plugins.memory_stores():
            if owned.owner == settings.store:
                return owned.item
        raise ConfigError(
            f"[memory] store is {settings.store!r}, but no plugin of that name offers a store.",
            hint="See: trunkline plugins list. Without the setting the built-in store is used.",
        )

    def _installed(self) -> Installed:
        """What is here. Of plugins that run apart nobody here knows the tools, so then nothing is said of any."""
        plugins = self.context.plugins
        apart = any(plugin.status == "isolated" for plugin in plugins.report.plugins)
        return Installed(
            plugins={plugin.name: plugin.version for plugin in plugins.report.loaded},
            adapters=frozenset(owned.item.name for owned in plugins.models()),
            tools=frozenset() if apart else frozenset(owned.item.spec.name for owned in plugins.tools()),
        )

    async def open(self) -> None:
        """Take the memory root and answer. Raises StorageError when history cannot be established."""
        home = self.context.home
        await self._store.open(home.memory, home.cache)
        self.resources.push_async_callback(self._store.aclose)
        if self._store.embedder is not None:
            self.resources.push_async_callback(self._store.embedder.aclose)
        add = self.context.service.add
        await add(MEMORY_READ, self._read)
        await add(MEMORY_READ_MANY, self._read_many)
        await add(MEMORY_WRITE, self._telling(self._write), limit=WRITERS)
        await add(MEMORY_WRITE_MANY, self._telling(self._write_many), limit=WRITERS)
        await add(MEMORY_EDIT, self._telling(self._edit), limit=WRITERS)
        await add(MEMORY_DELETE, self._telling(self._delete), limit=WRITERS)
        await add(MEMORY_MOVE, self._telling(self._move), limit=WRITERS)
        await add(MEMORY_REVERT, self._telling(self._revert), limit=WRITERS)
        await add(MEMORY_SEARCH, self._search)
        await add(MEMORY_LIST, self._list)
        await add(MEMORY_HISTORY, self._history)
        await add(MEMORY_BLAME, self._blame)
        await add(MEMORY_DIFF, self._diff)
        await add(MEMORY_EXAMINE, self._examine, limit=1)
        await add(MEMORY_EXPORT, self._export, limit=2)
        await add(MEMORY_IMPORT, self._import, limit=1)
        await add(MEMORY_INDEX_STATS, self._index_stats)
        await add(MEMORY_REINDEX, self._reindex, limit=1)
        await add(MEMORY_APPEND_CONVERSATION, self._telling(self._append_conversation), limit=WRITERS)
        await add(MEMORY_LOAD_CONVERSATION, self._load_conversation)
        await add(MEMORY_LIST_CONVERSATIONS, self._list_conversations)
        await add(MEMORY_FIND_CONVERSATION, self._find_conversation)
        await self._chunks().serve(add, self._telling, WRITERS)
        self._audit = AuditKeeper(self._store, self.context.bus, home.cache / "audit.seq")
        self._collections = Collections(home.cache / "conversations")
        self.resources.push_async_callback(self._collections.aclose)
        await CollectionAnswers(self._collections, self._redaction.text).serve(add)

    def _chunks(self) -> ChunkAnswers:
        """Chunks are files of the store; what is read off them comes from its index, if it has one."""
        store, plugins = self._store, self.context.plugins
        ask = store.ask if isinstance(store, GitMemoryStore) else Scanned(store).ask
        policies = Policies(store)
        reader = Reader(ask, policies)
        kinds = Kinds(
            (owned.item for owned in plugins.chunk_types()), (owned.item for owned in plugins.link_types())
        )
        self._keeper = Keeper(store, reader, policies, kinds, self._redaction.text)
        return ChunkAnswers(reader, self._keeper)

    async def serve(self) -> None:
        """Look after the store and tell of its commits, until cancelled."""
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._store.tend)
            group.start_soon(self._keep_telling)
            group.start_soon(self._keeper.keep_pruned)
            group.start_soon(self._audit.keep)
            group.start_soon(self._collections.keep_swept, self._lives, self._collection_seconds)

    async def _lives(self, conversation: str) -> bool:
        return await self._store.find_conversation(conversation) is not None

    @property
    def _collection_seconds(self) -> float:
        return self.context.config.settings.documents.conversation_days * DAY

    # Telling of changes ----------------------------------------------------------------------------------------

    def _note(self, changed: MemoryChanged) -> None:
        self._untold.append(changed)
        self._some_untold.set()

    def _telling(self, change: Callable[[Request[T]], Awaitable[R]]) -> Callable[[Request[T]], Awaitable[R]]:
        """A change is told before its asker is answered, so that what he asks next finds it heeded everywhere."""

        async def answer(request: Request[T]) -> R:
            try:
                return await change(request)
            finally:
                await self._tell()

        return answer

    async def _tell(self) -> None:
        while self._untold:
            changed = self._untold.popleft()
            try:
                await self.context.bus.publish(MEMORY_CHANGED, changed, part=_part(changed))
            except BusError as error:
                _log.warning("the change %s could not be told: %s", changed.version, error)

    async def _keep_telling(self) -> None:
        """Of what nobody asked for: edits made by hand."""
        while True:
            await self._some_untold.wait()
            self._some_untold = anyio.Event()
            await self._tell()

    # Files ---------------------------------------------------------------------------------------------------

    async def _read(self, request: Request[ReadMemory]) -> MemoryFile:
        return await self._store.read(request.data.path, request.data.version)

    async def _read_many(self, request: Request[ReadManyMemory]) -> MemoryFiles:
        files: list[MemoryFile] = []
        paths = tuple(map(checked, request.data.paths))
        for path, found in zip(paths, await self._store.read_many(paths), strict=True):
            if isinstance(found, MemoryFile):
                files.append(msgspec.structs.replace(found, content=found.content[: request.data.letters]))
            elif found.code == "invalid_path":
                _log.warning("a file of memory is left unread: %s", found.message)
                files.append(MemoryFile(path=path, content=UNREADABLE, hash="", modified_at=NEVER))
            elif found.code != "not_found":
                raise found
        return MemoryFiles(files=tuple(files))

    async def _write(self, request: Request[WriteMemory]) -> MemoryChanged:
        wish = request.data
        expected = {} if wish.expected is None else {wish.path: wish.expected}
        change = Change(
            {wish.path: encoded(wish.path, wish.content)},
            actor=wish.actor,
            reason=wish.reason,
            scope=scope_of(request),
        )
        version = await self._store.change(change, expected=dict[str, str | None](expected))
        return MemoryChanged(paths=(wish.path,), version=version, actor=wish.actor)

    async def _write_many(self, request: Request[WriteManyMemory]) -> MemoryChanged:
        wish = request.data
        files: dict[str, bytes | None] = dict.fromkeys(wish.gone)
        files |= {path: encoded(path, text) for path, text in wish.files.items()}
        change = Change(files, actor=wish.actor, reason=wish.reason, scope=scope_of(request))
        version = await self._store.change(change, expected=dict[str, str | None](wish.expected))
        return MemoryChanged(paths=tuple(files), version=version, actor=wish.actor)

    async def _edit(self, request: Request[EditMemory]) -> MemoryChanged:
        wish = request.data
        version = await self._store.edit(
            wish.path,
            wish.old,
            wish.new,
            actor=wish.actor,
            reason=wish.reason,
            scope=scope_of(request),
            expected=wish.expected,
        )
        return MemoryChanged(paths=(wish.path,), version=version, actor=wish.actor)

    async def _delete(self, request: Request[DeleteMemory]) -> MemoryChanged:
        wish = request.data
        version = await self._store.delete(
            wish.path,
            actor=wish.actor,
            reason=wish.reason,
            scope=scope_of(request),
            expected=wish.expected,
        )
        return MemoryChanged(paths=(wish.path,), version=version, actor=wish.actor)

    async def _move(self, request: Request[MoveMemory]) -> MemoryChanged:
        wish = request.data
        version = await self._store.move(
            wish.source,
            wish.target,
            actor=wish.actor,
            reason=wish.reason,
            scope=scope_of(request),
            expected=wish.expected,
        )
        return MemoryChanged(paths=(wish.source, wish.target), version=version, actor=wish.actor)

    async def _revert(self, request: Request[RevertMemory]) -> MemoryReverted:
        return await self._store.revert(request.data, scope=scope_of(request))

    async def _search(self, request: Request[SearchMemory]) -> MemoryHits:
        hits = await self._store.search(request.data)
        ranked = tuple(self.context.plugins.rank(request.data, hits))
        return MemoryHits(hits=ranked, vectors=self._store.vectors)

    async def _list(self, request: Request[ListMemory]) -> MemoryListing:
        found = await self._store.list(request.data.path, recursive=request.data.recursive)
        return MemoryListing(entries=found)

    async def _history(self, request: Request[MemoryHistory]) -> MemoryChanges:
        found = await self._store.history(request.data.path, limit=request.data.limit)
        return MemoryChanges(changes=found)

    async def _blame(self, request: Request[BlameMemory]) -> MemoryBlame:
        wish = request.data
        return await self._store.blame(
            wish.path, wish.version, first=wish.first, last=wish.last, mainline=wish.mainline
        )

    async def _examine(self, request: Request[ExamineMemory]) -> MemoryExamined:
        return MemoryExamined(findings=tuple(await self._store.examine(mend=request.data.mend)))

    async def _diff(self, request: Request[DiffMemory]) -> MemoryDifference:
        return await self._store.diff(request.data.path, request.data.old, request.data.new)

    async def _export(self, request: Request[ExportMemory]) -> MemoryExport:
        name = f"memory-{datetime.now(UTC):%Y%m%d-%H%M%S}-{new_id()[-6:].lower()}.tar"
        folder = anyio.Path(self.context.home.cache)
        await folder.mkdir(parents=True, exist_ok=True)
        file = folder / name
        await self._bring_audit()
        try:
            files = await self._store.export(self.context.home.cache / name, derived=request.data.derived)
            info = await self.context.bus.objects(EXPORTS).put_file(name, self.context.home.cache / name)
        except OSError as error:
            reason = (error.strerror or "storage failed").lower()
            raise Refusal("write_failure", f"The archive could not be written: {reason}.") from error
        finally:
            await file.unlink(missing_ok=True)
        return MemoryExport(object=name, size=info.size, files=files)

    async def _bring_audit(self) -> None:
        try:
            await self._audit.bring()
        except (BusError, Refusal, OSError) as error:
            _log.error("what the audit log has of late is not in the export: %s", error)

    async def _index_stats(self, request: Request[AskIndex]) -> IndexStats:
        return await self._store.index_stats()

    def _reindex(self, request: Request[RebuildIndex]) -> AsyncIterator[IndexProgress | IndexStats]:
        async def work(told: Callable[[IndexProgress], None]) -> IndexStats:
            return await self._store.reindex(told, vectors=request.data.vectors)

        return outliving(self._group, work)

    def _import(self, request: Request[ImportMemory]) -> AsyncIterator[ImportProgress | MemoryImport]:
        async def work(told: Callable[[ImportProgress], None]) -> MemoryImport:
            return await self._bring_in(request.data, told)

        return outliving(self._group, work)

    async def _bring_in(self, wish: ImportMemory, told: Callable[[ImportProgress], None]) -> MemoryImport:
        """Fetch the archive and bring it in. What came is told before the asker is answered, as every change."""
        file = self.context.home.cache / f"import-{new_id()}.tar"
        objects = self.context.bus.objects(IMPORTS)
        try:
            if not await objects.get_file(wish.object, file):
                raise Refusal("not_found", "The archive is not there, or did not arrive whole. Try again.")
            return await self._store.bring_in(file, wish, told)
        except OSError as error:
            reason = (error.strerror or "storage failed").lower()
            raise Refusal("write_failure", f"The archive could not be brought in: {reason}.") from error
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.Path(file).unlink(missing_ok=True)
                await objects.delete(wish.object)
                await self._tell()

    # Conversations -------------------------------------------------------------------------------------------

    async def _append_conversation(self, request: Request[AppendConversation]) -> ConversationAppended:
        return ConversationAppended(count=await self._store.append_conversation(request.data))

    async def _load_conversation(self, request: Request[LoadConversation]) -> ConversationSlice:
        wish = request.data
        return await self._store.load_conversation(wish.block, wish.conversation, after=wish.after)

    async def _list_conversations(self, request: Request[ListConversations]) -> ConversationPage:
        return await self._store.list_conversations(request.data)

    async def _find_conversation(self, request: Request[FindConversation]) -> ConversationFound:
        return ConversationFound(summary=await self._store.find_conversation(request.data.conversation))


def _part(changed: MemoryChanged) -> str:
    """Conversations change with every turn, and few want to hear of that."""
    return "conversations" if all(map(names_of, changed.paths)) else "files"
