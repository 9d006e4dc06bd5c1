"""The derived index of memory: what is in it, and making it anew."""

from typing import Literal

import msgspec

from trunkline.contracts.memory.operation import MemoryOperation, query, stream
from trunkline_bus import Payload


class GetIndexStats(Payload, frozen=True, kw_only=True, tag="memory.get-index-stats.v1"):
    """Ask what the index holds."""


class VectorStats(msgspec.Struct, frozen=True, kw_only=True):
    """The vectors of one embedder: how many passages have theirs and how many have not yet; ``fault`` says why not."""

    embedder: str
    model: str
    ready: int
    missing: int
    fault: str = ""


class IndexStats(Payload, frozen=True, kw_only=True, tag="memory.index-stats.v1"):
    """The contents of the index in figures. ``size`` is that of its file in bytes; ``kinds`` are passages by kind.

    ``version`` is the commit it stands at. ``vectors`` is None without an embedder: then words alone are searched.
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
    """Make the index anew from what is committed. ``vectors`` forgets the vectors too: they are made again, by an
    embedder that may cost money."""

    vectors: bool = False


class IndexProgress(Payload, frozen=True, kw_only=True, tag="memory.reindex-progress.v1"):
    """The progress of an index: ``done`` files of ``total``; then passages with vectors, where an embedder makes
    them.
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
