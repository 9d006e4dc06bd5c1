"""The plugin: declares its section, its tools and its guard, and nothing else."""

from collections.abc import Iterable

import trunkline
from trunkline.api.tool import ToolMiddleware
from trunkline_git.settings import GitSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    return [trunkline.ConfigSection("plugins", "git", GitSettings)]


@trunkline.hookimpl
def trunkline_tools(settings: trunkline.PluginSettings) -> Iterable[trunkline.Tool]:
    """git."""
    from trunkline_git.tools import git_tools

    return git_tools(settings.section(GitSettings))


@trunkline.hookimpl
def trunkline_tool_middleware(settings: trunkline.PluginSettings) -> Iterable[ToolMiddleware]:
    """The guard of protected branches, and of work that would be lost."""
    from trunkline_git.middleware import ConfirmMiddleware, RefuseMiddleware

    protected = settings.section(GitSettings).protected_branches
    return [RefuseMiddleware(protected), ConfirmMiddleware(protected)]
