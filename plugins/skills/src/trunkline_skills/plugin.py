"""The plugin: the skills in an agent's context, and the tool that reads one."""

from collections.abc import Iterable

import trunkline
from trunkline.api.hooks import RuntimeSettings


@trunkline.hookimpl
def trunkline_context_sources() -> Iterable[trunkline.ContextSource]:
    """The names of the skills, with what each is for."""
    from trunkline_skills.context_source import SkillContext

    return [SkillContext()]


@trunkline.hookimpl
def trunkline_health_checks(settings: trunkline.PluginSettings) -> Iterable[trunkline.HealthCheck]:
    """``skills.files``: which skills cannot be used, and why."""
    from trunkline_skills.health import skill_check

    return [trunkline.HealthCheck("skills.files", skill_check(settings.section(RuntimeSettings).memory_root))]


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """``list_skills`` and ``use_skill``."""
    from trunkline_skills import tools

    return [tools.list_skills, tools.use_skill]
