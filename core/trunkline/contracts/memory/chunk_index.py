"""ChunkIndex: the interface of an index of chunks, and of a store that makes indexes for other stores."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from trunkline.contracts.documents.collections import DocumentCollections
from trunkline.contracts.memory.chunk import Chunk
from trunkline.contracts.memory.chunks import (
    ChunkCounts,
    ChunkPage,
    ChunksLinked,
    FindLinked,
    ListChunks,
    Recall,
    RecallResult,
)
from trunkline.contracts.memory.layers import LayerLocation
from trunkline.contracts.memory.store import MemoryStore


class ChunkVisibility(msgspec.Struct, frozen=True):
    """The chunks that an actor may see: the chunks in ``folders`` that have not expired at ``now``.

    Each folder is the part of a path before ``chunks/``. If two folders hold a chunk with the same id, the earlier
    folder takes precedence.
    """

    folders: tuple[str, ...]
    now: datetime

    def rank(self, folder: str) -> int:
        """Return the position of a folder; the lowest position takes precedence. Raises ValueError for an unknown
        folder.
        """
        return self.folders.index(folder)


class ChunkLocation(msgspec.Struct, frozen=True):
    """The location of a chunk: ``path`` is the path of its file, ``place`` the part of that path before ``chunks/``."""

    id: str
    path: str
    place: str


class ChunkIndex(ABC):
    """Looks up the chunks of one memory.

    Guarantees: every answer includes all changes that the store acknowledged before the call, and no chunk that
    ``visible`` excludes. The index changes no file. Methods may run concurrently.

    Not guaranteed: the newest changes while history is damaged. The index may count accesses, and the counts may be
    lost when the index is deleted. Only ``count`` reports files that are not valid chunks.
    """

    @property
    @abstractmethod
    def vectors(self) -> float | None:
        """The share (0 to 1) of passages that have a vector; None without an embedder. Raises nothing."""

    @abstractmethod
    async def get(self, visible: ChunkVisibility, chunk: str, *, archived: bool = False) -> Chunk | None:
        """Return a chunk by its id and count the access; None if there is none. With ``archived`` return an archived
        chunk if there is no other. Raises Refusal if the store cannot be read.
        """

    @abstractmethod
    async def page(self, visible: ChunkVisibility, request: ListChunks) -> ChunkPage:
        """Return the chunks that match, the newest first, and the number of all matching chunks. Two pages are not one
        snapshot. Raises Refusal if the store cannot be read.
        """

    @abstractmethod
    async def linked(self, visible: ChunkVisibility, request: FindLinked) -> ChunksLinked | None:
        """Return the links of a chunk, the strongest first; None if there is no such chunk. Raises Refusal if the store
        cannot be read.
        """

    @abstractmethod
    async def recall(self, visible: ChunkVisibility, request: Recall) -> RecallResult:
        """Return the chunks that answer a question best, and count an access to each. If the embedder does not answer,
        only words are compared. Raises Refusal if the store cannot be read.
        """

    @abstractmethod
    async def count(self, folders: Sequence[str] | None) -> ChunkCounts:
        """Return the number of chunks in folders, or in all of memory, and the files that are not valid chunks. Raises
        Refusal if the store cannot be read.
        """

    @abstractmethod
    async def locate(
        self, visible: ChunkVisibility, chunk: str, *, archived: bool = False
    ) -> ChunkLocation | None:
        """Return the location of a chunk, with ``archived`` also of an archived chunk; None if there is none. Counts no
        access. Raises Refusal if the store cannot be read.
        """

    @abstractmethod
    async def stale(self, folder: str, now: datetime, days: int | None) -> Sequence[ChunkLocation]:
        """Return the chunks of a block's folder, or of the owner (""), that have expired at ``now``, or that were
        neither changed nor accessed for ``days``; None selects expired chunks only. Raises Refusal if the store cannot
        be read.
        """

    @abstractmethod
    async def layers(self) -> Sequence[LayerLocation]:
        """Return the layers that hold chunks, in order of precedence. Raises Refusal if the store cannot be read."""


class IndexProvider(ABC):
    """A store that also makes indexes for other stores.

    The memory worker uses the chosen store if it is an IndexProvider, and otherwise the first other store that is.

    Guarantees: each method is called once, when the memory worker is created.

    Not guaranteed: that this store is ever opened, because it may only make the indexes of another store.
    """

    @abstractmethod
    def chunk_index(self, store: MemoryStore) -> ChunkIndex:
        """Return an index of the chunks of ``store``, which may be this store. The index is used after ``store`` is
        open. Raises nothing. An exception prevents the start of the memory worker.
        """

    @abstractmethod
    def document_collections(self, folder: Path) -> DocumentCollections:
        """Return the documents of conversations that are stored in a folder of the cache. The folder may not exist yet.
        Raises nothing. An exception prevents the start of the memory worker.
        """


def visible_folders(layers: Iterable[LayerLocation], now: datetime) -> ChunkVisibility:
    """Return the visibility of the given layers, in their order of precedence."""
    return ChunkVisibility(tuple(layer.folder for layer in layers), now)
