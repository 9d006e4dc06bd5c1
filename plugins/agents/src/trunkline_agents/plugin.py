"""The plugin: the types of agents in an agent's context, and the tools that give agents tasks."""

from collections.abc import Iterable

import trunkline
from trunkline.api.hooks import RuntimeSettings


@trunkline.hookimpl
def trunkline_context_sources() -> Iterable[trunkline.ContextSource]:
    """The names of the types, with what each is for."""
    from trunkline_agents.context_source import AgentTypeContext

    return [AgentTypeContext()]


@trunkline.hookimpl
def trunkline_health_checks(settings: trunkline.PluginSettings) -> Iterable[trunkline.HealthCheck]:
    """``agents.types``: which types cannot be used, and why."""
    from trunkline_agents.health import agent_type_check

    root = settings.section(RuntimeSettings).memory_root
    return [trunkline.HealthCheck("agents.types", agent_type_check(root))]


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """``agent_run`` and the tools for agents that last."""
    from trunkline_agents import tools

    return [
        tools.agent_run,
        tools.create_agent,
        tools.query_agent,
        tools.message_agent,
        tools.list_agents,
        tools.terminate_agent,
    ]
