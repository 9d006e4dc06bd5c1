"""Looking up chunks: the contract of an index of them, and of what makes indexes for stores that have none."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from trunkline.contracts.documents.collections import DocumentCollections
from trunkline.contracts.memory.chunks import (
    Chunk,
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
    """The chunks that an actor may see: those in ``folders`` that have not expired by ``now``.

    The folders are those before ``chunks/``. Where two hold a chunk of the same id, the earlier folder counts.
    """

    folders: tuple[str, ...]
    now: datetime

    def rank(self, folder: str) -> int:
        """Return the position of a folder; a lower one counts first. Raises ValueError for another folder."""
        return self.folders.index(folder)


class ChunkLocation(msgspec.Struct, frozen=True):
    """Where a chunk lies: ``path`` is that of its file, ``place`` the folder before ``chunks/``."""

    id: str
    path: str
    place: str


class ChunkIndex(ABC):
    """Looks up the chunks of one memory.

    Every answer includes all changes that the store acknowledged before the call. The index changes no file; it may
    count accesses, which need not survive its deletion. A file among the chunks that is not a valid chunk is in no
    answer but that of ``count``. All methods raise Refusal when the store cannot be read.
    """

    @property
    @abstractmethod
    def vectors(self) -> float | None:
        """The share (0 to 1) of passages that have a vector; None without an embedder."""

    @abstractmethod
    async def get(self, visible: ChunkVisibility, chunk: str, *, archived: bool = False) -> Chunk | None:
        """Return a chunk by its id and count the access; None when there is none. With ``archived`` an archived one is
        returned where there is no other."""

    @abstractmethod
    async def page(self, visible: ChunkVisibility, request: ListChunks) -> ChunkPage:
        """Return the chunks that match, the newest first, and how many match in all."""

    @abstractmethod
    async def linked(self, visible: ChunkVisibility, request: FindLinked) -> ChunksLinked | None:
        """Return the links of a chunk, the strongest first; None when there is no such chunk."""

    @abstractmethod
    async def recall(self, visible: ChunkVisibility, request: Recall) -> RecallResult:
        """Return the chunks that answer a question best, and count an access to each."""

    @abstractmethod
    async def count(self, folders: Sequence[str] | None) -> ChunkCounts:
        """Return the number of chunks in folders, or in all of memory."""

    @abstractmethod
    async def locate(
        self, visible: ChunkVisibility, chunk: str, *, archived: bool = False
    ) -> ChunkLocation | None:
        """Return where a chunk lies, or an archived one; None when there is none. Counts no access."""

    @abstractmethod
    async def stale(self, folder: str, now: datetime, days: int | None) -> Sequence[ChunkLocation]:
        """Return the chunks of a block's folder, or ("") of the owner, that have expired by ``now``, or that were
        neither changed nor used for ``days``."""

    @abstractmethod
    async def layers(self) -> Sequence[LayerLocation]:
        """Return all layers that hold chunks, those that count first in front."""


class IndexProvider(ABC):
    """A store that also makes indexes for stores that have none.

    The memory worker asks the chosen store when it is one, and otherwise the first other store that is.
    """

    @abstractmethod
    def chunk_index(self, store: MemoryStore) -> ChunkIndex:
        """Return an index of the chunks of a store, which may be this one. It is used once the store is open."""

    @abstractmethod
    def document_collections(self, folder: Path) -> DocumentCollections:
        """Return the documents of conversations below a folder of the cache."""


def visible_folders(layers: Iterable[LayerLocation], now: datetime) -> ChunkVisibility:
    """Return the visibility of some layers, which count in their order."""
    return ChunkVisibility(tuple(layer.folder for layer in layers), now)
