"""The plugin: declares its section and its tools, and nothing else."""

from collections.abc import Iterable

import trunkline
from trunkline_shell.settings import ShellSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    return [trunkline.ConfigSection("plugins", "shell", ShellSettings)]


@trunkline.hookimpl
def trunkline_tools(settings: trunkline.PluginSettings) -> Iterable[trunkline.Tool]:
    """The tools that run programs (MB-F17, MN-F14)."""
    from trunkline_shell.background import background_tools
    from trunkline_shell.commands import command_tool
    from trunkline_shell.developing import developer_tools

    chosen = settings.section(ShellSettings)
    return [command_tool(chosen), *developer_tools(chosen), *background_tools(settings.home, chosen)]
