"""Installs a planned plugin and removes installed ones. pip does the work, and ``plugins.toml`` records it."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from trunkline.cli.install.environment import Environment
from trunkline.cli.install.pip import Pip
from trunkline.cli.install.resolution import InstallPlan
from trunkline.cli.install.wheel import Wheel
from trunkline.errors import PluginError
from trunkline.plugins import pins
from trunkline.plugins.pins import Pin


def install(pip: Pip, offer: InstallPlan, home: Path) -> None:
    """Install exactly the wheels of the plan, and pin them. Raises PluginError and StorageError."""
    plugin = offer.plugin
    if not isinstance(plugin, Wheel):
        raise PluginError(
            f"{plugin.name} is not built.", hint="Build it first: trunkline.cli.install.wheel_build."
        )
    known = pins.read_pins(home)
    files = [str(wheel.file) for wheel in (plugin, *offer.dependencies)]
    done = pip.run("install", "--quiet", "--no-index", "--no-deps", "--force-reinstall", *files)
    if done.returncode:
        raise PluginError(
            f"pip could not install {plugin.name}: {done.stderr.strip()[-500:]}",
            hint="Check that this environment is writable.",
        )
    earlier = known.get(plugin.name)
    brought = dict(earlier.brought) if earlier else {}
    brought |= {
        wheel.name: pins.PinnedWheel(version=wheel.version, sha256=wheel.sha256)
        for wheel in offer.dependencies
    }
    known[plugin.name] = Pin(
        version=plugin.version,
        sha256=plugin.sha256,
        source=offer.source,
        agreed=plugin.manifest,
        brought=brought,
    )
    pins.write_pins(home, known)


def removal_plan(name: str, home: Path) -> list[str]:
    """Return the distributions to remove with a plugin: the plugin, and those that were installed with it and that no
    other distribution needs.

    Raises:
        PluginError: this program did not install the plugin.
    """
    known = pins.read_pins(home)
    if name not in known:
        raise PluginError(
            f'{name} was not installed with "trunkline plugins install".',
            hint=f"Remove it with the tool that installed it, or run: trunkline plugins disable {name}",
        )
    environment = Environment.current()
    going = {
        name,
        *(one for one in known[name].brought if one in environment.distributions),
    } - environment.platform
    while stays := {one for one in going - {name} if environment.dependents(one, besides=going)}:
        going -= stays
    return [name, *sorted(going - {name})]


def remove(pip: Pip, going: Iterable[str], home: Path) -> None:
    """Remove the distributions. The first one is the plugin. Raises PluginError and StorageError."""
    name, *others = going
    known = pins.read_pins(home)
    there = [one for one in (name, *others) if one in Environment.current().distributions]
    done = pip.run("uninstall", "--quiet", "--yes", *there) if there else None
    if done is not None and done.returncode:
        raise PluginError(
            f"pip could not remove {name}: {done.stderr.strip()[-500:]}", hint="Nothing was noted."
        )
    left = {one: wheel for one, wheel in known.pop(name).brought.items() if one not in others}
    pins.write_pins(home, _reassign_dependencies(known, left))


def _reassign_dependencies(known: dict[str, Pin], left: dict[str, pins.PinnedWheel]) -> dict[str, Pin]:
    """Record distributions that stay, because another plugin needs them, under that plugin. They are removed
    with it.
    """
    environment = Environment.current()
    for owner, pin in known.items():
        mine = {one: wheel for one, wheel in left.items() if one in environment.closure([owner])}
        known[owner] = msgspec.structs.replace(pin, brought=mine | pin.brought)
    return known
