"""The plugin: declares its parts and nothing else."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import trunkline
from trunkline.api.hooks import RuntimeSettings, WorkerKind
from trunkline.api.model import ModelMiddleware
from trunkline.api.turn import TurnRouter

if TYPE_CHECKING:
    from trunkline_router.orchestrator import Orchestrator


class RouterPlugin:
    """Yields the router and the orchestrator. Every worker has its own instance."""

    @cached_property
    def _orchestrator(self) -> "Orchestrator":
        from trunkline_router.orchestrator import Orchestrator

        return Orchestrator()

    @trunkline.hookimpl
    def trunkline_turn_routers(self) -> Iterable[TurnRouter]:
        """Yield the router by categories."""
        from trunkline_router.router import CategoryRouter

        return [CategoryRouter()]

    @trunkline.hookimpl
    def trunkline_model_middleware(self) -> Iterable[ModelMiddleware]:
        """Yield the orchestrator, which answers model calls of turns that are split."""
        return [self._orchestrator]

    @trunkline.hookimpl
    def trunkline_lifespan(self, worker: WorkerKind) -> Iterable[trunkline.Lifespan]:
        """Connect the orchestrator of a monitor with memory."""
        return [self._orchestrator.lifespan] if worker == "monitor" else []

    @trunkline.hookimpl
    def trunkline_health_checks(self, settings: trunkline.PluginSettings) -> Iterable[trunkline.HealthCheck]:
        """``router.preferences``: whether the owner's choices can be read."""
        from trunkline_router.preferences import preferences_check

        memory = settings.section(RuntimeSettings).memory_root
        return [trunkline.HealthCheck("router.preferences", preferences_check(memory))]
