"""The plugin: its section, the middleware around model calls, and the circuits that monitors share."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import trunkline
from trunkline.api.hooks import WorkerKind
from trunkline.api.model import ModelMiddleware
from trunkline_failover.settings import FailoverSettings

if TYPE_CHECKING:
    from trunkline_failover.circuits import CircuitBreaker


class FailoverPlugin:
    """Connects the middleware with the circuits on the bus. Every worker has its own instance."""

    @cached_property
    def _circuits(self) -> "CircuitBreaker":
        from trunkline_failover.circuits import CircuitBreaker

        return CircuitBreaker()

    @trunkline.hookimpl
    def trunkline_config(self) -> Iterable[trunkline.ConfigSection]:
        return [
            trunkline.ConfigSection(
                "plugins", "failover", FailoverSettings, models=FailoverSettings.named_models
            )
        ]

    @trunkline.hookimpl
    def trunkline_lifespan(self, worker: WorkerKind) -> Iterable[trunkline.Lifespan]:
        """Share the circuits, in every monitor."""
        return [self._circuits.lifespan] if worker == "monitor" else []

    @trunkline.hookimpl
    def trunkline_model_middleware(self, settings: trunkline.PluginSettings) -> Iterable[ModelMiddleware]:
        """Yield the middleware that repeats failed calls."""
        from trunkline_failover.middleware import FailoverMiddleware

        return [FailoverMiddleware(settings.section(FailoverSettings), self._circuits)]
