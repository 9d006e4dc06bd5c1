"""The plugin: declares its parts and nothing else."""

from collections.abc import Iterable

import trunkline
from trunkline.api.hooks import RuntimeSettings
from trunkline.api.turn import TurnRouter


@trunkline.hookimpl
def trunkline_turn_routers() -> Iterable[TurnRouter]:
    """Yield the router by categories."""
    from trunkline_router.router import CategoryRouter

    return [CategoryRouter()]


@trunkline.hookimpl
def trunkline_health_checks(settings: trunkline.PluginSettings) -> Iterable[trunkline.HealthCheck]:
    """``router.preferences``: whether the owner's choices can be read."""
    from trunkline_router.preferences import preferences_check

    memory = settings.section(RuntimeSettings).memory_root
    return [trunkline.HealthCheck("router.preferences", preferences_check(memory))]
