"""The plugin: its section, the middleware around models, the breaker of each worker, ``trunkline budget`` and
``/x/trunkline-budget``."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import trunkline
from trunkline.api.hooks import MemorySettings, WorkerKind
from trunkline.api.memory import utc_now
from trunkline.api.model import ModelMiddleware, ModelsSettings, installed_prices
from trunkline_budget.settings import BudgetSettings

if TYPE_CHECKING:
    import click

    from trunkline.api.gateway import HttpRoute
    from trunkline_budget.breaker import BudgetBreaker
    from trunkline_budget.http_routes import BudgetRoutes


class BudgetPlugin:
    """Connects the middleware with the counters on the bus. Every worker has its own instance."""

    def __init__(self) -> None:
        self._made: BudgetBreaker | None = None
        self._routes: BudgetRoutes | None = None

    def _breaker(self, settings: BudgetSettings) -> "BudgetBreaker":
        """Return the breaker that lifespan and middleware share."""
        from trunkline_budget.breaker import BudgetBreaker

        self._made = self._made or BudgetBreaker(settings)
        return self._made

    def _http(self, settings: BudgetSettings) -> "BudgetRoutes":
        """Return the routes that lifespan and gateway share."""
        from trunkline_budget.http_routes import BudgetRoutes

        self._routes = self._routes or BudgetRoutes(settings)
        return self._routes

    @trunkline.hookimpl
    def trunkline_config(self) -> Iterable[trunkline.ConfigSection]:
        return [
            trunkline.ConfigSection("plugins", "budget", BudgetSettings, blocks=BudgetSettings.named_blocks)
        ]

    @trunkline.hookimpl
    def trunkline_lifespan(
        self, worker: WorkerKind, settings: trunkline.PluginSettings
    ) -> Iterable[trunkline.Lifespan]:
        """The breaker, in every worker that asks models; the routes in the gateway."""
        own = settings.section(BudgetSettings)
        if worker == "gateway":
            return [self._http(own).lifespan]
        asks = worker == "monitor" or (worker == "memory" and settings.section(MemorySettings).embedder)
        return [self._breaker(own).lifespan] if asks else []

    @trunkline.hookimpl
    def trunkline_http_routes(self, settings: trunkline.PluginSettings) -> "Iterable[HttpRoute]":
        """``/x/trunkline-budget``: the state of the budgets, and their reset."""
        return self._http(settings.section(BudgetSettings)).routes()

    @trunkline.hookimpl
    def trunkline_model_middleware(self, settings: trunkline.PluginSettings) -> Iterable[ModelMiddleware]:
        """The middleware of loops and of spending: the owner may set a limit at any time."""
        from trunkline_budget.middleware import LoopLimit, SpendLimit

        breaker = self._breaker(settings.section(BudgetSettings))
        prices = installed_prices(settings.section(ModelsSettings).prices)
        return [LoopLimit(breaker, utc_now), SpendLimit(breaker, utc_now, prices)]

    @trunkline.hookimpl
    def trunkline_health_checks(self, settings: trunkline.PluginSettings) -> Iterable[trunkline.HealthCheck]:
        """``budget.limits``: what is limited."""
        from trunkline_budget.health import limits_check

        return [trunkline.HealthCheck("budget.limits", limits_check(settings.section(BudgetSettings)))]

    @trunkline.hookimpl
    def trunkline_commands(self, settings: trunkline.PluginSettings) -> "Iterable[click.Command]":
        """``trunkline budget``."""
        from trunkline_budget.commands import budget_group

        return [budget_group(settings)]
