"""The chunks in the index of the git store."""

from typing import Protocol, TypeVar

from trunkline_git_store.chunks.sqlite_index import IndexQuery, SqliteChunkIndex
from trunkline_git_store.search.semantic import QueryVector

T = TypeVar("T")


class IndexedStore(Protocol):
    """A store that keeps an index in the form of ``index/schema.py``."""

    @property
    def vectors(self) -> float | None: ...
    async def query(self, question: IndexQuery[T]) -> T:
        """Ask the index, once it has everything that was committed."""
        ...

    async def embed_query(self, text: str) -> QueryVector | None:
        """Return what is looked for as a vector; None where words must do."""
        ...


class GitChunkIndex(SqliteChunkIndex):
    """Asks the index of one store."""

    def __init__(self, store: IndexedStore) -> None:
        super().__init__()
        self._store = store

    @property
    def vectors(self) -> float | None:
        """The share of passages that have a vector; None without an embedder."""
        return self._store.vectors

    async def query(self, question: IndexQuery[T]) -> T:
        """Ask the store's index."""
        return await self._store.query(question)

    async def embed_query(self, text: str) -> QueryVector | None:
        """Ask the store's embedder."""
        return await self._store.embed_query(text)
