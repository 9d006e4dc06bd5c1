"""Where chunks are looked up: an index that can be asked. What is asked is in the modules beside this one."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

import apsw

from trunkline.workers.memory.chunks.queries import BlobReader
from trunkline.workers.memory.search.semantic import QueryVector

T = TypeVar("T")

IndexQuery = Callable[[apsw.Connection, BlobReader], T]


class ChunkIndex(ABC):
    """An index in the form of ``memory.index.schema``. A store that keeps one says so by this class."""

    @property
    @abstractmethod
    def vectors(self) -> float | None:
        """The share of passages (0 to 1) that have vectors; None without an embedder."""

    @abstractmethod
    async def query(self, question: IndexQuery[T]) -> T:
        """Ask the index, once it has everything that was committed before."""

    @abstractmethod
    async def embed_query(self, text: str) -> QueryVector | None:
        """What is looked for, as a vector; None where words must do."""
