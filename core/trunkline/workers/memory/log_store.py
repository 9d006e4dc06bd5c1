"""A memory store that is a log: whoever can keep a list of records can keep a memory. Persistence is the subclass's.

The store holds everything in main memory and derives all of it from the records, so it is for memories that fit
there; what the records mean is in ``log_book``. The built-in store is ``store.GitMemoryStore``.
"""

import logging
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from trunkline._util.private_folders import make_private
from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ConversationPage,
    ConversationSlice,
    ConversationSummary,
    ListConversations,
)
from trunkline.contracts.memory.messages import (
    MemoryBlame,
    MemoryChange,
    MemoryChanged,
    MemoryDifference,
    MemoryEntry,
    MemoryFile,
    MemoryHit,
    MemoryReverted,
    RevertMemory,
    SearchMemory,
)
from trunkline.contracts.memory.store import NOWHERE, Change, MemoryStore, StoreContext
from trunkline.errors import StorageError
from trunkline.workers.memory.log_record import MemoryRecord
from trunkline.workers.memory.paths import normalize_folder
from trunkline_bus import Refusal, Scope

if TYPE_CHECKING:
    from trunkline.workers.memory.log_view import LogView
    from trunkline.workers.memory.operations import WriteOperation

log = logging.getLogger(__name__)


class LogStore(MemoryStore):
    """A memory store over two synchronous methods, which are called in threads and one at a time."""

    _book: "LogView"

    def __init__(self) -> None:
        self._writing = anyio.Lock()

    @abstractmethod
    def load(self, root: Path) -> Iterable[MemoryRecord]:
        """Take the root, which exists, and give every record, oldest first. No other process may have it as well.

        Raises:
            Exception: anything; memory does not start, and the person is told why.
        """

    @abstractmethod
    def keep(self, record: MemoryRecord) -> None:
        """Put a record at the end; it survives a power cut when this returns.

        Raises:
            Exception: anything; the record is not kept, and whoever wanted the change is refused.
        """

    def close(self) -> None:
        """Let go of the root."""

    # Life ----------------------------------------------------------------------------------------------------

    async def open(self, context: StoreContext) -> None:
        """Read the records; a memory without any gets its first files. See ``MemoryStore.open``."""
        from trunkline.contracts.memory.initial_files import INITIAL_FILES
        from trunkline.workers.memory.log_view import LogView

        self._context, root = context, context.root
        try:
            self._book = await anyio.to_thread.run_sync(lambda: LogView(self._loaded(root)))
        except Exception as error:
            raise StorageError(
                f"Memory cannot start: {root} cannot be read ({type(error).__name__}: {error}).",
                hint="Nothing was changed. The store's README says what it needs.",
            ) from error
        if not self._book.head:
            await self.change(Change({**INITIAL_FILES}, actor="trunkline", reason="Begin this memory"))

    def _loaded(self, root: Path) -> Iterable[MemoryRecord]:
        make_private(root)
        return self.load(root)

    async def aclose(self) -> None:
        """Finish the change under way, then let go."""
        with anyio.CancelScope(shield=True):
            async with self._writing:
                await anyio.to_thread.run_sync(self.close)

    # Changing ------------------------------------------------------------------------------------------------

    async def change(self, change: Change, *, expected: dict[str, str | None] | None = None) -> str:
        """Keep files together. See ``MemoryStore.change``."""
        return await self._execute(self._book.write_operation(change, expected or {}))

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
        from trunkline.workers.memory.operations import edit_operation

        wish = edit_operation(path, old, new, actor=actor, reason=reason, scope=scope, expected=expected)
        return await self._execute(wish)

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
        from trunkline.workers.memory.operations import move_operation

        wish = move_operation(source, target, actor=actor, reason=reason, scope=scope, expected=expected)
        return await self._execute(wish)

    async def delete(
        self, path: str, *, actor: str, reason: str, scope: Scope = NOWHERE, expected: str | None = None
    ) -> str:
        """Delete a file or folder."""
        from trunkline.workers.memory.operations import delete_operation

        wish = delete_operation(path, actor=actor, reason=reason, scope=scope, expected=expected)
        return await self._execute(wish)

    async def revert(self, revert: RevertMemory, *, scope: Scope = NOWHERE) -> MemoryReverted:
        """Take a change back, or go back to a version."""
        from trunkline.workers.memory.history.revert import RevertFiles

        past, plain = self._book.log_history, normalize_folder(revert.path)
        if revert.to is not None:
            found = past.restore_plan(plain, past.record_number(revert.to))
        elif revert.version is not None:
            found = past.revert_plan(plain, past.record_number(revert.version))
        else:
            found = past.revert_plan(plain, past.last_change(plain, past.record_number(None)))
        wish = RevertFiles(actor=revert.actor, reason=revert.reason, scope=scope, undoing=found)
        version = await self._execute(wish)
        return MemoryReverted(paths=wish.affected_paths, version=version, undone=found.version)

    async def append_conversation(self, append: AppendConversation) -> int:
        """Append the messages that are not stored yet."""
        await self._execute(self._book.append_operation(append))
        return self._book.load_conversation(append.block, append.conversation, 0).count

    async def _execute(self, wish: "WriteOperation") -> str:
        """Plan, pass the rules, keep, and only then let others see it. One at a time; a cancel comes too late."""
        async with self._writing:
            record = self._book.plan_record(wish, self._context.rules)
            if record is None:
                return self._book.head
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._persist, record)
            self._book.apply(record)
        paths = (*record.files, *record.grown)
        self._context.on_change(MemoryChanged(paths=paths, version=record.version, actor=wish.actor))
        return record.version

    def _persist(self, record: MemoryRecord) -> None:
        try:
            self.keep(record)
        except Exception as error:
            log.exception("a change of memory could not be kept")
            reason = (error.strerror if isinstance(error, OSError) else None) or "storage failed"
            raise Refusal("write_failure", f"Nothing was written: {reason.lower()}.") from error

    # Reading -------------------------------------------------------------------------------------------------

    async def read(self, path: str, version: str | None = None) -> MemoryFile:
        """A file's text, now or at a version."""
        return self._book.read(path, version)

    async def list(self, path: str, *, recursive: bool) -> tuple[MemoryEntry, ...]:
        """Names under a folder."""
        return self._book.list(path, recursive)

    async def search(self, query: SearchMemory) -> tuple[MemoryHit, ...]:
        """Search names or text; every change acknowledged before the call is seen."""
        return await anyio.to_thread.run_sync(lambda: self._book.search(query))

    async def history(self, path: str, *, limit: int) -> tuple[MemoryChange, ...]:
        """The changes of a file or folder."""
        return self._book.history(path, limit)

    async def blame(
        self,
        path: str,
        version: str | None = None,
        *,
        first: int = 1,
        last: int | None = None,
        mainline: bool = False,
    ) -> MemoryBlame:
        """Who wrote each line of a file. A log has one line of history, so ``mainline`` makes no difference."""
        plain = (await self.read(path, version)).path
        return self._book.log_history.blame(plain, self._book.log_history.record_number(version), first, last)

    async def diff(self, path: str, old: str | None = None, new: str | None = None) -> MemoryDifference:
        """What differs between two versions."""
        past, plain = self._book.log_history, normalize_folder(path)
        after = past.record_number(new)
        if old is None:
            after = past.last_change(plain, after)
        return past.difference(plain, after - 1 if old is None else past.record_number(old), after)

    async def export(self, target: Path, *, derived: bool = False) -> int:
        """Write an archive: the files as they are, and every record as a line of ``history.jsonl``."""
        return await anyio.to_thread.run_sync(lambda: self._book.export(target))

    async def load_conversation(self, block: str, conversation: str, *, after: int) -> ConversationSlice:
        """A conversation's messages."""
        return self._book.load_conversation(block, conversation, after)

    async def list_conversations(self, query: ListConversations) -> ConversationPage:
        """A page of conversations."""
        return self._book.list_conversations(query)

    async def find_conversation(self, conversation: str) -> ConversationSummary | None:
        """A conversation by its id alone."""
        return self._book.find_conversation(conversation)
