"""The plugin: its section, the service in each gateway, its tools, ``trunkline schedules`` and a check."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import trunkline
from trunkline.api.hooks import ChannelsSettings, RuntimeSettings, WorkerKind

if TYPE_CHECKING:
    import click

    from trunkline.api.tool import ToolMiddleware
    from trunkline_pulse.tools import ScheduleTools


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    """``[plugins.pulse]``."""
    from trunkline_pulse.settings import PulseSettings

    return [trunkline.ConfigSection("plugins", "pulse", PulseSettings)]


@trunkline.hookimpl
def trunkline_lifespan(
    worker: WorkerKind, settings: trunkline.PluginSettings
) -> Iterable[trunkline.Lifespan]:
    """The service of schedules, in every gateway."""
    if worker != "gateway":
        return []
    from trunkline_pulse.lifespan import PulseLifespan
    from trunkline_pulse.settings import PulseSettings

    zone = settings.section(PulseSettings).zone()
    return [PulseLifespan(settings.home, zone, settings.section(ChannelsSettings).enabled)]


@trunkline.hookimpl
def trunkline_tools(settings: trunkline.PluginSettings) -> Iterable[trunkline.Tool]:
    """The tools of pulses and of cron jobs."""
    from trunkline_pulse.tools import cron_tools, pulse_tools

    own = _tools(settings)
    return [*pulse_tools(own), *cron_tools(own)]


@trunkline.hookimpl
def trunkline_tool_middleware(settings: trunkline.PluginSettings) -> "Iterable[ToolMiddleware]":
    """The check of calls before the owner is asked about them."""
    from trunkline_pulse.tools import ScheduleCallCheck

    return [ScheduleCallCheck(_tools(settings))]


@trunkline.hookimpl
def trunkline_health_checks(settings: trunkline.PluginSettings) -> Iterable[trunkline.HealthCheck]:
    """``pulse.schedules``: whether the files of all schedules can be read."""
    from trunkline_pulse.health import schedules_check

    memory = settings.section(RuntimeSettings).memory_root
    return [trunkline.HealthCheck("pulse.schedules", schedules_check(settings.home / memory))]


@trunkline.hookimpl
def trunkline_commands(settings: trunkline.PluginSettings) -> "Iterable[click.Command]":
    """``trunkline schedules``."""
    from trunkline_pulse.commands import schedules_group

    return [schedules_group(settings)]


def _tools(settings: trunkline.PluginSettings) -> "ScheduleTools":
    from trunkline_pulse.settings import PulseSettings
    from trunkline_pulse.tools import ScheduleTools

    return ScheduleTools(settings.section(PulseSettings).zone())
