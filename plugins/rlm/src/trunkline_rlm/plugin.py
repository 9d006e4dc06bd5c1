"""The plugin: declares its section, its tool and a check, and nothing else."""

from collections.abc import Iterable

import trunkline
from trunkline_rlm.settings import RlmSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    return [trunkline.ConfigSection("plugins", "rlm", RlmSettings)]


@trunkline.hookimpl
def trunkline_tools(settings: trunkline.PluginSettings) -> Iterable[trunkline.Tool]:
    """``retrieve`` (RLM-F13)."""
    from trunkline_rlm.tool import made

    return [made(settings.section(RlmSettings))]


@trunkline.hookimpl
def trunkline_health_checks() -> Iterable[trunkline.HealthCheck]:
    """Whether code can be shut in on this machine."""
    from trunkline_rlm.health import confined

    return [trunkline.HealthCheck("rlm.confined", confined)]
