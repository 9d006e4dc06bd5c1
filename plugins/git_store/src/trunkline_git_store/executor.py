"""Runs the work of a store in threads: one writes, one uses the search index, one the path index, a few read.

Code that reads history reads again with a fresh repository when an object seems to be missing: another git
process may have packed it.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import anyio.to_thread
import apsw
import pygit2

from trunkline.api.bus import Refusal
from trunkline.api.store import AccessDenied, path_refusal
from trunkline_git_store.components import StoreComponents
from trunkline_git_store.history.path_index import PathHistory
from trunkline_git_store.repository import Repository, error_text

_log = logging.getLogger(__name__)

T = TypeVar("T")


class StoreExecutor:
    """Runs jobs on the parts of a store."""

    def __init__(self, components: StoreComponents) -> None:
        self._components = components
        self._writer_limit = anyio.CapacityLimiter(1)
        self._indexing = anyio.CapacityLimiter(1)
        self._looking_back = anyio.CapacityLimiter(1)
        self._reading = anyio.CapacityLimiter(8)

    async def write(self, job: Callable[[], T]) -> T:
        """Run what changes the root; one at a time."""
        return await anyio.to_thread.run_sync(job, limiter=self._writer_limit)

    async def read(self, job: Callable[[], T]) -> T:
        """Run what reads files as they are."""
        try:
            return await anyio.to_thread.run_sync(job, limiter=self._reading)
        except AccessDenied as shut:
            raise path_refusal(shut.path, shut.reason) from shut

    async def use_index(self, job: Callable[[], T]) -> T:
        """Run what uses the index, as it stands; one at a time."""
        return await anyio.to_thread.run_sync(job, limiter=self._indexing)

    async def use_path_index(self, job: Callable[[], T]) -> T:
        """Run a job that uses the path index, without updating it. One job runs at a time."""
        return await anyio.to_thread.run_sync(job, limiter=self._looking_back)

    async def query_index(self, question: Callable[[apsw.Connection], T]) -> T:
        """Ask the index, when it has everything that was committed."""

        index = self._components.index

        def ask() -> T:
            index.catch_up()
            return index.database.use(question)

        def ask_as_it_is() -> T:
            if not index.is_made():
                raise KeyError("the index cannot be built")
            return index.database.use(question)

        try:
            return await self.use_index(ask)
        except (KeyError, pygit2.GitError) as error:
            _log.error("searches use the index without an update, because history cannot be read: %s", error)
        try:
            return await self.use_index(ask_as_it_is)
        except (KeyError, pygit2.GitError) as error:
            raise self._damage_refusal(error) from error

    async def query_path_index(self, question: Callable[[PathHistory], T]) -> T:
        """Ask about the past, when everything that was committed is known there."""
        return await self._retry_after_reopen(
            lambda: self.use_path_index(lambda: self._components.path_index.query(question))
        )

    async def read_history(self, job: Callable[[Repository], T]) -> T:
        """Read history with a repository handle of one's own."""

        def read() -> T:
            repository = Repository(self._components.layout.root)
            try:
                return job(repository)
            finally:
                repository.close()

        return await self._retry_after_reopen(lambda: self.read(read))

    async def reopen_repositories(self) -> None:
        """Let every handle see which packs there are."""
        await self.write(self._components.repository.reopen)
        await self.use_index(self._components.index.repository.reopen)
        await self.use_path_index(self._components.path_index.repository.reopen)

    async def _retry_after_reopen(self, operation: Callable[[], Awaitable[T]]) -> T:
        try:
            return await operation()
        except (KeyError, pygit2.GitError):
            await self.reopen_repositories()
        try:
            return await operation()
        except (KeyError, pygit2.GitError) as error:
            _log.error("history cannot be read: %s", error)
            raise self._damage_refusal(error) from error

    def _damage_refusal(self, error: Exception) -> Refusal:
        where = f"{self._components.layout.git} ({error_text(error)})"
        return Refusal(
            "not_found", f"That part of history cannot be read in {where}. Run: trunkline memory doctor"
        )
