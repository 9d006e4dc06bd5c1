"""The plugin: declares its parts and nothing else."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import trunkline
from trunkline.api.hooks import RuntimeSettings, WorkerKind
from trunkline.api.memory import Purger

if TYPE_CHECKING:
    import click


@trunkline.hookimpl
def trunkline_lifespan(worker: WorkerKind) -> Iterable[trunkline.Lifespan]:
    """The learner, in every monitor; one of them learns."""
    if worker != "monitor":
        return []
    from trunkline_learning.turn_consumer import learning_lifespan

    return [learning_lifespan]


@trunkline.hookimpl
def trunkline_context_sources() -> Iterable[trunkline.ContextSource]:
    """Yield the source of learned context for the task at hand."""
    from trunkline_learning.context_source import LearningContextSource

    return [LearningContextSource()]


@trunkline.hookimpl
def trunkline_health_checks(settings: trunkline.PluginSettings) -> Iterable[trunkline.HealthCheck]:
    """``learning.preferences``: whether the owner's choices can be read."""
    from trunkline_learning.preferences import preferences_check

    memory = settings.section(RuntimeSettings).memory_root
    return [trunkline.HealthCheck("learning.preferences", preferences_check(memory))]


@trunkline.hookimpl
def trunkline_commands() -> "Iterable[click.Command]":
    """``trunkline learning``."""
    from trunkline_learning.commands import learning

    return [learning]


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """Yield the tools that look up what was learned."""
    from trunkline_learning import tools

    return [tools.known_facts, tools.playbook_strategies]


@trunkline.hookimpl
def trunkline_purgers() -> Iterable[Purger]:
    """Episodes and strategies lose the conversations that are purged."""
    from trunkline_learning.purger import LearningPurger

    return [LearningPurger()]
