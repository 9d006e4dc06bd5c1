"""A memory store over a list of records. A subclass only stores the records.

The store keeps everything in main memory and computes it from the records, so it is suitable for
memories that fit there. ``state`` interprets the records; the subclass stores them.
"""

import io
import tarfile
from abc import abstractmethod
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread
from trunkline import MemoryEntry, MemoryFile, MemoryHit, StorageError, new_id
from trunkline.api.bus import Refusal, Scope
from trunkline.api.gateway import ConversationSummary, ListConversations
from trunkline.api.memory import (
    AppendConversation,
    ConversationPage,
    ConversationSlice,
    MemoryChange,
    SearchMemory,
)
from trunkline.api.paths import make_private
from trunkline.api.store import (
    INITIAL_FILES,
    NOWHERE,
    Change,
    MemoryBlame,
    MemoryChanged,
    MemoryDifference,
    MemoryReverted,
    MemoryStore,
    RevertMemory,
    StoreContext,
    apply_rules,
    conversation_paths,
    encode_text,
    is_under,
    missing_blocks,
    normalize_folder,
    normalize_path,
    path_refusal,
)

from trunkline_sample.conversation import Conversation, lines
from trunkline_sample.records import MemoryRecord
from trunkline_sample.state import MemoryState


class RecordStore(MemoryStore):
    """A memory store over two synchronous methods, which are called in threads, one call at a
    time.
    """

    def __init__(self) -> None:
        self._writing = anyio.Lock()

    @abstractmethod
    def load(self, root: Path) -> Iterable[MemoryRecord]:
        """Lock the root, which exists, and yield every record, oldest first. No other process may
        use the root meanwhile.

        Raises:
            Exception: any exception. Memory does not start, and the error is shown to the person.
        """

    @abstractmethod
    def keep(self, record: MemoryRecord) -> None:
        """Append a record. It survives a power failure when this returns.

        Raises:
            Exception: any exception. The record is not stored, and the change is refused.
        """

    def close(self) -> None:
        """Release the root."""

    # Opening and closing -------------------------------------------------------------------------

    async def open(self, context: StoreContext) -> None:
        """Read the records. A memory without records receives its initial files. See
        ``MemoryStore.open``.
        """
        self._context, root = context, context.root
        try:
            self._state = await anyio.to_thread.run_sync(lambda: MemoryState(self._loaded(root)))
        except Exception as error:
            raise StorageError(
                f"Memory cannot start: {root} cannot be read ({type(error).__name__}: {error}).",
                hint="Nothing was changed. The store's README says what it needs.",
            ) from error
        if not self._state.head:
            await self.change(Change({**INITIAL_FILES}, actor="trunkline", reason="Begin this memory"))

    def _loaded(self, root: Path) -> Iterable[MemoryRecord]:
        make_private(root)
        return self.load(root)

    async def aclose(self) -> None:
        """Finish the current change, then close."""
        with anyio.CancelScope(shield=True):
            async with self._writing:
                await anyio.to_thread.run_sync(self.close)

    # Changes -------------------------------------------------------------------------------------

    async def change(self, change: Change, *, expected: dict[str, str | None] | None = None) -> str:
        """Change files in one commit. See ``MemoryStore.change``."""
        files = {normalize_path(path): data for path, data in change.files.items()}
        hashes = {normalize_path(path): wanted for path, wanted in (expected or {}).items()}

        def plan(state: MemoryState) -> dict[str, bytes | None]:
            for path, wanted in hashes.items():
                state.require_hash(path, wanted)
            return files

        return await self._commit(plan, change.actor, change.reason, change.scope)

    async def edit(
        self,
        path: str,
        old: str,
        new: str,
        *,
        actor: str,
        reason: str,
        scope: Scope = NOWHERE,
        expected: str | None = None,
    ) -> str:
        """Replace the first occurrence of ``old``."""
        plain, before, after = normalize_path(path), encode_text(path, old), encode_text(path, new)

        def plan(state: MemoryState) -> dict[str, bytes | None]:
            held = state.existing(plain)
            state.require_hash(plain, expected)
            if not before or before not in held.data:
                raise Refusal(
                    "write_conflict", f"The text to replace is not in {plain!r}. Read it and try again."
                )
            return {plain: held.data.replace(before, after, 1)}

        return await self._commit(plan, actor, reason or f"Edit {plain}", scope)

    async def move(
        self,
        source: str,
        target: str,
        *,
        actor: str,
        reason: str,
        scope: Scope = NOWHERE,
        expected: str | None = None,
    ) -> str:
        """Move a file or folder."""
        old, new = normalize_path(source), normalize_path(target)

        def plan(state: MemoryState) -> dict[str, bytes | None]:
            moved = state.files_at(old)
            state.require_hash(old, expected)
            if is_under(new, old):
                raise path_refusal(new, f"it lies within {old!r}, which is being moved")
            if new in state.files:
                raise Refusal("write_conflict", f"There is already a file {new!r}.")
            return dict.fromkeys(moved) | {new + path.removeprefix(old): data for path, data in moved.items()}

        return await self._commit(plan, actor, reason or f"Move {old} to {new}", scope)

    async def delete(
        self, path: str, *, actor: str, reason: str, scope: Scope = NOWHERE, expected: str | None = None
    ) -> str:
        """Delete a file or folder."""
        plain = normalize_path(path)

        def plan(state: MemoryState) -> dict[str, bytes | None]:
            gone = dict.fromkeys(state.files_at(plain))
            state.require_hash(plain, expected)
            return gone

        return await self._commit(plan, actor, reason or f"Delete {plain}", scope)

    async def revert(self, revert: RevertMemory, *, scope: Scope = NOWHERE) -> MemoryReverted:
        """Undo a change, or restore a version."""
        plain, state = normalize_folder(revert.path), self._state
        if revert.to is not None:
            number, files = state.number(revert.to), state.restored
        elif revert.version is not None:
            number, files = state.number(revert.version), state.taken_back
        else:
            number, files = state.last_change(plain, state.number(None)), state.taken_back
        paths = tuple(files(plain, number))
        undone = state.records[number]
        reason = revert.reason or f"Revert {undone.version}: {undone.reason}"
        version = await self._commit(lambda state: files(plain, number), revert.actor, reason, scope)
        return MemoryReverted(paths=paths, version=version, undone=undone.version)

    async def append_conversation(self, append: AppendConversation) -> int:
        """Append the messages that are not stored yet."""
        path = self._conversation_path(append.block, append.conversation)

        def plan(state: MemoryState) -> dict[str, bytes | None]:
            held = state.data(path)
            known = Conversation.begin(append) if held is None else Conversation.parse(held)
            added = known.fresh(append.messages)
            header = known.titled(append, added)
            if held is None or header != known.header:
                return {path: lines((header, *known.messages, *added))}
            return {path: held + lines(added)}

        scope = Scope(block=append.block, conversation=append.conversation, turn=append.turn)
        await self._commit(plan, append.actor, f"Conversation {append.conversation}", scope)
        return Conversation.parse(self._state.existing(path).data).summary.message_count

    async def _commit(
        self, plan: Callable[[MemoryState], dict[str, bytes | None]], actor: str, reason: str, scope: Scope
    ) -> str:
        """Plan a change, apply the rules, store it, and then make it visible. Changes run one at
        a time. A cancellation does not interrupt the storing.
        """
        async with self._writing:
            state = self._state
            change = self._checked(Change(plan(state), actor=actor, reason=reason, scope=scope))
            files = {path: data for path, data in change.files.items() if data != state.data(path)}
            if not files:
                return state.head
            grown = {path: tail for path, data in files.items() if (tail := _tail(state.data(path), data))}
            record = MemoryRecord(
                version=new_id().lower(),
                time=datetime.now(UTC),
                actor=actor,
                reason=reason,
                conversation=scope.conversation,
                turn=scope.turn,
                files={path: data for path, data in files.items() if path not in grown},
                grown=grown,
            )
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._persist, record)
            state.apply(record)
        self._context.on_change(MemoryChanged(paths=record.paths, version=record.version, actor=actor))
        return record.version

    def _checked(self, change: Change) -> Change:
        """Return the change after applying the rules. Its paths must be free."""
        state = self._state
        for path, data in change.files.items():
            if data is not None:
                state.require_free(path)
        change.known = {
            path: len(held)
            for path, data in change.files.items()
            if (held := state.data(path)) and _tail(held, data)
        }
        change.missing_blocks = missing_blocks(change.files, lambda path: path in state.files)
        return apply_rules(self._context.rules, change)

    def _persist(self, record: MemoryRecord) -> None:
        try:
            self.keep(record)
        except Exception as error:
            why = getattr(error, "strerror", None) or str(error)
            raise Refusal("write_failure", f"Nothing was written: {why.lower().rstrip('.')}.") from error

    # Reads ---------------------------------------------------------------------------------------

    async def read(self, path: str, version: str | None = None) -> MemoryFile:
        """Return a file's text, current or at a version."""
        return self._state.read(normalize_path(path), version)

    async def read_bytes(self, path: str) -> bytes:
        """Return a file's bytes."""
        return self._state.existing(normalize_path(path)).data

    async def list(self, path: str, *, recursive: bool) -> tuple[MemoryEntry, ...]:
        """Return the entries of a folder."""
        return self._state.entries(normalize_folder(path), recursive=recursive)

    async def search(self, query: SearchMemory) -> tuple[MemoryHit, ...]:
        """Search names or text. The result includes every change that was acknowledged before the
        call.
        """
        return await anyio.to_thread.run_sync(self._state.search, query, normalize_folder(query.path))

    async def history(self, path: str, *, limit: int) -> tuple[MemoryChange, ...]:
        """Return the changes of a file or folder."""
        return tuple(self._state.history(normalize_folder(path))[: max(0, limit)])

    async def blame(
        self,
        path: str,
        version: str | None = None,
        *,
        first: int = 1,
        last: int | None = None,
        mainline: bool = False,
    ) -> MemoryBlame:
        """Return the author of each line of a file. A list has one history, so ``mainline`` has
        no effect.
        """
        return self._state.blame(normalize_path(path), self._state.number(version), first, last)

    async def diff(self, path: str, old: str | None = None, new: str | None = None) -> MemoryDifference:
        """Return the differences between two versions."""
        state, plain = self._state, normalize_folder(path)
        after = state.number(new)
        if old is None:
            after = state.last_change(plain, after)
        return state.difference(plain, after - 1 if old is None else state.number(old), after)

    async def export(self, target: Path, *, derived: bool = False) -> int:
        """Write an archive: the current files, and every record as a line of ``history.jsonl``."""
        return await anyio.to_thread.run_sync(self._write_archive, target)

    def _write_archive(self, target: Path) -> int:
        files = dict(self._state.files)
        with tarfile.open(target, "w") as tar:
            history = b"".join(record.encode() + b"\n" for record in list(self._state.records))
            _add(tar, "history.jsonl", history)
            for path, held in sorted(files.items()):
                _add(tar, f"memory/{path}", held.data)
        return len(files)

    # Conversations -------------------------------------------------------------------------------

    def _conversation_path(self, block: str, conversation: str) -> str:
        return conversation_paths(block, conversation)[0]

    async def load_conversation(self, block: str, conversation: str, *, after: int) -> ConversationSlice:
        """Return a conversation's messages."""
        held = self._state.data(self._conversation_path(block, conversation))
        return ConversationSlice(exists=False) if held is None else Conversation.parse(held).slice(after)

    async def list_conversations(self, query: ListConversations) -> ConversationPage:
        """Return a page of conversations."""
        found = [one.summary for one in self._state.conversations() if _matches(one, query)]
        found.sort(key=lambda summary: (summary.updated_at, summary.id), reverse=True)
        page = tuple(found[query.offset : query.offset + query.limit])
        return ConversationPage(conversations=page, total=len(found), limit=query.limit, offset=query.offset)

    async def find_conversation(self, conversation: str) -> ConversationSummary | None:
        """Return a conversation by its id."""
        summaries = (one.summary for one in self._state.conversations())
        return next((summary for summary in summaries if summary.id == conversation), None)


def _tail(before: bytes | None, after: bytes | None) -> bytes:
    """Return the text that was appended to a file; empty when the file was changed in another
    way.
    """
    return after[len(before) :] if before and after and after.startswith(before) else b""


def _matches(conversation: Conversation, query: ListConversations) -> bool:
    summary = conversation.summary
    said = "\n".join((summary.title or "", *(one.content or "" for one in conversation.messages))).casefold()
    return query.admits(summary) and all(word in said for word in (query.search or "").casefold().split())


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o600
    tar.addfile(info, io.BytesIO(data))
