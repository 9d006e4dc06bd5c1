"""The plugins' hooks of one turn: the choice of the model, the stop rule and the middleware."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from trunkline.contracts.turns.context import TurnInfo, TurnMiddleware
from trunkline.plugins import Plugins
from trunkline.workers.monitor.context_builder import ContextBuilder, TurnContext
from trunkline.workers.monitor.turn import Turn


class TurnHooks:
    """Calls the hooks of the plugins with the state of one turn."""

    def __init__(self, plugins: Plugins, builder: ContextBuilder, context: TurnContext) -> None:
        self._plugins = plugins
        self._builder = builder
        self._context = context

    def select_model(self, preference: str | None) -> str | None:
        """Return the model that a plugin selects for a turn that has not started, else ``preference``."""
        return self._plugins.select_model(self._info(Turn()), preference or "") or preference

    def stop_reason(self, turn: Turn) -> str | None:
        """Return why a plugin ends the turn before its next model call; None when none does."""
        return self._plugins.stop_turn(self._info(turn))

    async def run_with_middleware(self, turn: Turn, run: Callable[[], Awaitable[None]]) -> None:
        """Run the turn inside the plugins' middleware. That of the first plugin is the outermost."""
        info = self._info(turn)
        for owned in reversed(self._plugins.turn_middleware()):
            run = _wrap(owned.item, info, run)
        await run()

    def _info(self, turn: Turn) -> TurnInfo:
        model = turn.started.model if turn.started else ""
        info = self._builder.info(self._context, model)
        return replace(info, step=turn.step, input_tokens=turn.last_input_tokens)


def _wrap(
    middleware: TurnMiddleware, info: TurnInfo, proceed: Callable[[], Awaitable[None]]
) -> Callable[[], Awaitable[None]]:
    return lambda: middleware(info, proceed)
