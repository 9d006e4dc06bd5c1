"""The plugin: declares its section and its tool, and nothing else."""

from collections.abc import Iterable

import trunkline
from trunkline_rlm.settings import RlmSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    return [trunkline.ConfigSection("plugins", "rlm", RlmSettings)]


@trunkline.hookimpl
def trunkline_tools(settings: trunkline.PluginSettings) -> Iterable[trunkline.Tool]:
    """``retrieve``."""
    from trunkline_rlm.tool import retrieve_tool

    return [retrieve_tool(settings.section(RlmSettings))]
