"""The chain of middleware around calls of models and their requests, in every worker that asks an adapter."""

from collections.abc import AsyncIterator, Callable, Sequence

from trunkline.contracts.models.adapter import AskModel, ModelEvent, ModelMiddleware, ModelRequest


def wrap_with_middleware(middleware: Sequence[ModelMiddleware], ask: AskModel) -> AskModel:
    """Return ``ask`` with the middleware around it, the first one outermost."""
    for one in reversed(middleware):
        ask = _wrap_one(one, ask)
    return ask


def _wrap_one(
    middleware: ModelMiddleware, proceed: AskModel
) -> Callable[[ModelRequest], AsyncIterator[ModelEvent]]:
    return lambda request: middleware(request, proceed)
