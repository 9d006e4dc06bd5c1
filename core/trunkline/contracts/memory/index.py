"""The messages of memory's search index: its statistics, and rebuilding it. The index is derived from the files of
memory.
"""

from typing import Literal

import msgspec

from trunkline.contracts.memory.operation import MemoryOperation, query, stream
from trunkline_bus import Payload


class GetIndexStats(Payload, frozen=True, kw_only=True, tag="memory.get-index-stats.v1"):
    """Get the statistics of the search index."""


class VectorStats(msgspec.Struct, frozen=True, kw_only=True):
    """The vectors of one embedder: how many passages have a vector and how many do not. ``fault`` says why vectors are
    missing.
    """

    embedder: str
    model: str
    ready: int
    missing: int
    fault: str = ""


class IndexStats(Payload, frozen=True, kw_only=True, tag="memory.index-stats.v1"):
    """The statistics of the search index.

    ``size`` is the size of the index file in bytes. ``kinds`` counts the passages of each kind. ``version`` is the
    commit that the index has reached. ``vectors`` is None without an embedder; then a search compares words only.
    """

    version: str
    files: int
    conversations: int
    passages: int
    kinds: dict[str, int]
    languages: tuple[str, ...]
    words: int
    size: int
    vectors: VectorStats | None = None


class RebuildIndex(Payload, frozen=True, kw_only=True, tag="memory.reindex.v1"):
    """Rebuild the search index from the committed files.

    ``vectors`` also deletes the vectors. The embedder then makes all vectors again, which may cost money.
    """

    vectors: bool = False


class IndexProgress(Payload, frozen=True, kw_only=True, tag="memory.reindex-progress.v1"):
    """The progress of rebuilding the index. ``done`` and ``total`` count files in the stage ``files``, and passages
    that have vectors in the stage ``vectors``, which only an embedder adds.
    """

    done: int
    total: int
    stage: Literal["files", "vectors"] = "files"


MEMORY_INDEX_STATS = query(
    "index-stats", GetIndexStats, IndexStats, "The content of the index, in numbers.", ("operator",)
)
MEMORY_REINDEX: MemoryOperation[RebuildIndex, IndexProgress | IndexStats] = stream(
    "reindex", RebuildIndex, IndexProgress | IndexStats,  # type: ignore[arg-type]
    "Rebuild the index: the progress, then the content.", ("operator",),
)  # fmt: skip
