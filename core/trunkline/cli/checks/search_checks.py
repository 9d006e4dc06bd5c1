"""The check that memory's search answers."""

from trunkline.cli.checks.check import CheckContext, failure, ok, warning
from trunkline.contracts.memory.index import GetIndexStats
from trunkline.contracts.memory.messages import SearchMemory
from trunkline.contracts.memory.subjects import MEMORY_INDEX_STATS, MEMORY_SEARCH
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline_bus import BusError, NoResponders

SECONDS = 4.0


async def memory_search(context: CheckContext) -> HealthResult | None:
    """memory.search: a search of memory succeeds, and the embedder works."""
    if context.bus is None:
        return None
    question = SearchMemory(query="memory", kinds=("file", "turn", "chunk"), limit=1)
    try:
        await context.bus.call(MEMORY_SEARCH, question, timeout=SECONDS)
        stats = await context.bus.call(MEMORY_INDEX_STATS, GetIndexStats(), timeout=SECONDS)
    except NoResponders:
        return None  # workers.alive tells it
    except BusError as error:
        return failure(
            f"A search of memory fails: {error}.",
            "Run: trunkline memory reindex. If that fails, stop the platform and delete "
            f"{context.home.cache / 'memory.db'}: memory rebuilds it.",
        )
    vectors = stats.vectors
    if vectors is not None and vectors.fault:
        return warning(
            f"The embedder {vectors.embedder} fails, so search uses words only: {vectors.fault}",
            "Check that it can be reached. If its model has changed, run: trunkline memory reindex --vectors.",
        )
    return ok(f"Search works; its index has {stats.passages} passages")
