"""The plugin: declares its section and its backends, and nothing else."""

from collections.abc import Iterable
from functools import partial

import trunkline
from trunkline_sandbox.settings import SandboxSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    return [trunkline.ConfigSection("plugins", "sandbox", SandboxSettings)]


@trunkline.hookimpl
def trunkline_sandboxes(settings: trunkline.PluginSettings) -> Iterable[trunkline.Sandbox]:
    """The backends that the configuration allows, in the order of preference."""
    from trunkline_sandbox.bubblewrap.backend import Bubblewrap
    from trunkline_sandbox.docker.backend import Docker

    wanted = settings.section(SandboxSettings)
    made = {"bubblewrap": Bubblewrap(wanted, settings.home), "docker": Docker(wanted, settings.home)}
    return [backend for name, backend in made.items() if wanted.backend in ("auto", name)]


@trunkline.hookimpl
def trunkline_health_checks(settings: trunkline.PluginSettings) -> Iterable[trunkline.HealthCheck]:
    """Yield the checks that report how well limits are enforced on this machine, and whether programs can have a
    network."""
    from trunkline_sandbox.health import limits_check, network_check

    section = settings.section(SandboxSettings)
    backend = section.backend
    return [
        trunkline.HealthCheck("sandbox.limits", partial(limits_check, backend, section.workspace_mb)),
        trunkline.HealthCheck("sandbox.network", partial(network_check, backend)),
    ]
