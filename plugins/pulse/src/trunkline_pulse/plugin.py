"""The plugin: its section, the service in each gateway, its tools, ``trunkline schedules`` and a check."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import trunkline
from trunkline.api.hooks import ChannelsSettings, RuntimeSettings, WorkerKind

if TYPE_CHECKING:
    import click

    from trunkline.api.gateway import HttpRoute
    from trunkline.api.tool import ToolMiddleware
    from trunkline_pulse.http_routes import ScheduleRoutes
    from trunkline_pulse.tools import ScheduleTools


class PulsePlugin:
    """Declares the parts of schedules. Every worker has its own instance."""

    def __init__(self) -> None:
        self._routes: ScheduleRoutes | None = None

    def _http(self, settings: trunkline.PluginSettings) -> "ScheduleRoutes":
        """Return the routes that lifespan and gateway share."""
        from trunkline_pulse.http_routes import ScheduleRoutes
        from trunkline_pulse.settings import PulseSettings

        self._routes = self._routes or ScheduleRoutes(settings.section(PulseSettings).zone())
        return self._routes

    @trunkline.hookimpl
    def trunkline_config(self) -> Iterable[trunkline.ConfigSection]:
        """``[plugins.pulse]``."""
        from trunkline_pulse.settings import PulseSettings

        return [trunkline.ConfigSection("plugins", "pulse", PulseSettings)]

    @trunkline.hookimpl
    def trunkline_lifespan(
        self, worker: WorkerKind, settings: trunkline.PluginSettings
    ) -> Iterable[trunkline.Lifespan]:
        """The service of schedules and their routes, in every gateway."""
        if worker != "gateway":
            return []
        from trunkline_pulse.lifespan import PulseLifespan
        from trunkline_pulse.settings import PulseSettings

        zone = settings.section(PulseSettings).zone()
        own = PulseLifespan(settings.home, zone, settings.section(ChannelsSettings).telling)
        return [own, self._http(settings).lifespan]

    @trunkline.hookimpl
    def trunkline_tools(self, settings: trunkline.PluginSettings) -> Iterable[trunkline.Tool]:
        """The tools of pulses and of cron jobs."""
        from trunkline_pulse.tools import cron_tools, pulse_tools

        own = _tools(settings)
        return [*pulse_tools(own), *cron_tools(own)]

    @trunkline.hookimpl
    def trunkline_tool_middleware(self, settings: trunkline.PluginSettings) -> "Iterable[ToolMiddleware]":
        """The check of calls before the owner is asked about them."""
        from trunkline_pulse.tools import ScheduleCallCheck

        return [ScheduleCallCheck(_tools(settings))]

    @trunkline.hookimpl
    def trunkline_health_checks(self, settings: trunkline.PluginSettings) -> Iterable[trunkline.HealthCheck]:
        """``pulse.schedules``: whether the files of all schedules can be read."""
        from trunkline_pulse.health import schedules_check

        memory = settings.section(RuntimeSettings).memory_root
        return [trunkline.HealthCheck("pulse.schedules", schedules_check(settings.home / memory))]

    @trunkline.hookimpl
    def trunkline_commands(self, settings: trunkline.PluginSettings) -> "Iterable[click.Command]":
        """``trunkline schedules``."""
        from trunkline_pulse.commands import schedules_group

        return [schedules_group(settings)]

    @trunkline.hookimpl
    def trunkline_http_routes(self, settings: trunkline.PluginSettings) -> "Iterable[HttpRoute]":
        """``/x/trunkline-pulse``: the schedules for the web app."""
        return self._http(settings).routes()


def _tools(settings: trunkline.PluginSettings) -> "ScheduleTools":
    from trunkline_pulse.settings import PulseSettings
    from trunkline_pulse.tools import ScheduleTools

    return ScheduleTools(settings.section(PulseSettings).zone())
