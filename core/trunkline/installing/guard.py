"""What must not come in, whoever says yes: what would replace, shadow or run before something that is there."""

from collections.abc import Collection, Iterable
from importlib.machinery import PathFinder
from pathlib import Path

from packaging.utils import canonicalize_name

from trunkline.errors import PluginError
from trunkline.installing.environment import Environment
from trunkline.installing.wheel import Wheel

AT_START = {"sitecustomize", "usercustomize"}
"""Modules that every Python imports when it starts."""


def insist_on_plugin(wheel: Wheel) -> None:
    """Raises PluginError for a distribution that Trunkline would never load."""
    if not wheel.is_plugin:
        raise PluginError(
            f"{wheel.name} {wheel.version} is no plugin: it has no entry point in the group trunkline.",
            hint="Is the name right? Something that is no plugin is installed with pip.",
        )


def insist_on_peace(wheel: Wheel, environment: Environment, free: Collection[str]) -> None:
    """Raises PluginError when a wheel needs other versions than are installed, with the names and who needs them.
    Those in ``free`` may be replaced."""
    found = [
        f"{need.name}{need.specifier} (here is {version}, {_who(canonicalize_name(need.name), environment)})"
        for need, version in environment.conflicts(wheel.requires)
        if canonicalize_name(need.name) not in free
    ]
    if found:
        raise PluginError(
            f"{wheel.name} {wheel.version} needs {', '.join(found)}. What is installed is not replaced for a plugin.",
            hint="Ask its author for a version that goes with these, or run it in an environment of its own.",
        )


def _who(name: str, environment: Environment) -> str:
    users = environment.needing(name)
    return f"which {', '.join(users[:3])} needs" if users else "which was there before"


def insist_on_room(wheels: Iterable[Wheel], environment: Environment, free: Collection[str]) -> None:
    """Raises PluginError when a wheel would touch what belongs to somebody else.

    Args:
        wheels: What would be installed.
        environment: What is.
        free: The distributions that may be replaced: the plugin, and what only it needs.
    """
    for wheel in wheels:
        if wheel.name in environment.platform:
            raise PluginError(
                f"{wheel.name} belongs to the platform, which is not replaced by installing a plugin.",
                hint="Its author must choose another name. To upgrade the platform, upgrade its checkout.",
            )
        if wheel.name not in free and environment.version(wheel.name) is not None:
            raise PluginError(
                f"{wheel.name} {environment.version(wheel.name)} would be replaced by {wheel.version}.",
                hint="Ask its author for a version that goes with what is installed.",
            )
        _insist_on_late_start(wheel)
        _insist_on_own_modules(wheel, environment)
        _insist_on_own_files(wheel, environment)


def _insist_on_late_start(wheel: Wheel) -> None:
    early = sorted(name for name in wheel.modules if name.endswith(".pth") or name in AT_START)
    if early:
        raise PluginError(
            f"{wheel.name} would run code at the start of every Python of this environment ({', '.join(early)}).",
            hint="A plugin is run when a worker loads it, and never before. Tell its author.",
        )


def _insist_on_own_modules(wheel: Wheel, environment: Environment) -> None:
    """A regular package belongs to one distribution; parts of a namespace package may come from several."""
    for name in sorted(wheel.modules - environment.modules(wheel.name)):
        spec = PathFinder.find_spec(name)
        if (
            spec is None
            or spec.origin is None
            or Path(spec.origin).resolve() in environment.files(wheel.name)
        ):
            continue
        raise PluginError(
            f"{wheel.name} brings a module {name}, which is here already and is not its own.",
            hint="It would take the other's place. Tell its author.",
        )


def _insist_on_own_files(wheel: Wheel, environment: Environment) -> None:
    own = environment.files(wheel.name)
    for place in wheel.places:
        if ".." in place.parts or (place.exists() and place.resolve() not in own):
            raise PluginError(
                f"{wheel.name} would overwrite {place.name} in {place.parent}.", hint="Tell its author."
            )
