"""Files by their names."""

from collections.abc import Iterable

from trunkline import MemoryHit
from trunkline.api.memory import SearchMemory
from trunkline.api.store import is_under


def search_names(paths: Iterable[str], query: SearchMemory) -> tuple[MemoryHit, ...]:
    """The files whose path holds every word of the query; those with it in the name come first."""
    wanted = query.query.casefold().split()
    hits: list[MemoryHit] = []
    for path in paths:
        folded, name = path.casefold(), path.rpartition("/")[2].casefold()
        if wanted and is_under(path, query.path) and all(word in folded for word in wanted):
            score = sum((word in name) + name.startswith(word) for word in wanted) / len(wanted)
            hits.append(MemoryHit(path=path, line=1, content=path, context="", score=score))
    hits.sort(key=lambda hit: (-hit.score, hit.path))
    return tuple(hits[: query.limit])
