"""The tool ``retrieve``."""

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from trunkline import Tool, ToolContext, tool
from trunkline_rlm.settings import RlmSettings

if TYPE_CHECKING:
    from trunkline_rlm.retrieval import RetrievalLimits

TIMEOUT = 1_800.0


def retrieve_tool(settings: RlmSettings) -> Tool:
    """The tool with these settings."""

    @tool(effect="read", timeout=TIMEOUT, untrusted_output=True, derived=True)
    async def retrieve(
        context: ToolContext, query: str, max_iterations: Annotated[int, Meta(ge=1, le=50)] | None = None
    ) -> dict[str, Any]:
        """Find an answer in memory that takes several searches: a model reads chunks, follows their links and puts
        together what they say. Slower and dearer than memory_search; use it when one search is not enough.

        Args:
            query: The question, with all that is needed to understand it.
            max_iterations: How many steps the search may take.
        """
        from trunkline_rlm.budget import Budget
        from trunkline_rlm.memory_functions import MemoryFunctions
        from trunkline_rlm.retrieval import Retrieval

        library = MemoryFunctions(context.memory, context.report)
        budget = Budget(max_cost=round(settings.max_cost_usd * 1_000_000), max_calls=settings.max_calls)
        bounds = _bounds(settings, max_iterations or settings.max_iterations)
        retrieval = Retrieval(context.model, library, budget, bounds, context.report, context.sandbox)
        found = await retrieval.answer(query)
        return {
            "answer": found.answer,
            "ended": found.ended,
            "source_chunks": list(library.sources),
            "traversal_path": library.steps,
            "iterations_used": found.iterations,
            "model_calls": budget.calls,
            "cost_usd": budget.cost / 1_000_000,
            "cost_by_model": {name: cost / 1_000_000 for name, cost in budget.by_model.items()},
        }

    return retrieve


def _bounds(settings: RlmSettings, iterations: int) -> "RetrievalLimits":
    from trunkline_rlm.repl.process import ReplLimits
    from trunkline_rlm.retrieval import RetrievalLimits

    limits = ReplLimits(timeout=settings.timeout, memory=settings.memory_mb * 1024 * 1024)
    return RetrievalLimits(
        iterations=iterations, depth=settings.max_depth, limits=limits, model=settings.model
    )
