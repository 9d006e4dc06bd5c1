"""The check that memory's search answers."""

from trunkline.cli.checks.check import CheckContext, failure, ok, warning
from trunkline.contracts.memory.index import GetIndexStats
from trunkline.contracts.memory.messages import SearchMemory
from trunkline.contracts.memory.subjects import MEMORY_INDEX_STATS, MEMORY_SEARCH
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline_bus import BusError, NoResponders

SECONDS = 4.0


async def memory_search(patient: CheckContext) -> HealthResult | None:
    """memory.search: a search of memory answers, and its embedder does."""
    if patient.bus is None:
        return None
    question = SearchMemory(query="memory", kinds=("file", "turn", "chunk"), limit=1)
    try:
        await patient.bus.call(MEMORY_SEARCH, question, timeout=SECONDS)
        stats = await patient.bus.call(MEMORY_INDEX_STATS, GetIndexStats(), timeout=SECONDS)
    except NoResponders:
        return None  # workers.alive tells it
    except BusError as error:
        return failure(
            f"A search of memory answers with an error: {error}.",
            "Run: trunkline memory reindex. If that fails, stop the platform and delete "
            f"{patient.home.cache / 'memory.db'}: memory makes it anew.",
        )
    vectors = stats.vectors
    if vectors is not None and vectors.fault:
        return warning(
            f"The embedder {vectors.embedder} fails, and words alone are searched: {vectors.fault}",
            "See that it can be reached. If its model is another one now, run: trunkline memory reindex --vectors.",
        )
    return ok(f"Search answers; {stats.passages} passages are in its index")
