"""Refuses distributions that would replace or shadow installed packages, or run code at Python's start. The person's
answer cannot override a refusal.
"""

from collections.abc import Collection, Iterable, Iterator
from importlib.machinery import PathFinder, all_suffixes
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from trunkline.cli.install.distribution import SCRIPTS, DistributionInfo, normal_requirements
from trunkline.cli.install.environment import Environment
from trunkline.cli.install.project import DYNAMIC_VERSION
from trunkline.cli.install.wheel import Wheel
from trunkline.errors import PluginError
from trunkline.plugins.discovery import normal_name

AT_START = {"sitecustomize", "usercustomize"}
"""Modules that every Python imports when it starts."""


def require_plugin(wheel: DistributionInfo) -> None:
    """Raise PluginError for a distribution that Trunkline would never load."""
    if not wheel.is_plugin:
        raise PluginError(
            f"{wheel.name} {wheel.version} is not a plugin: it has no entry point in the group trunkline.",
            hint="Check the name. Install packages that are not plugins with pip.",
        )


def require_index_only(wheel: DistributionInfo) -> None:
    """Raise PluginError when a wheel requires a package from a URL: pip would build that package, and so run its
    code, before a person has agreed.
    """
    for text in wheel.requires:
        try:
            needed = Requirement(text)
        except InvalidRequirement:
            continue  # pip reports it
        if needed.url is not None:
            raise PluginError(
                f"{wheel.name} needs {needed.name} from an address.",
                hint="The dependencies of a plugin must come from the package index. Report this to its author.",
            )


def require_compatible(wheel: DistributionInfo, environment: Environment, free: Collection[str]) -> None:
    """Raise PluginError when a wheel requires other versions than are installed. The error names the packages and
    their dependents. Packages in ``free`` may be replaced.
    """
    found = [
        f"{need.name}{need.specifier} (here is {version}, "
        f"{_dependents_text(canonicalize_name(need.name), environment)})"
        for need, version in environment.conflicts(wheel.requires)
        if canonicalize_name(need.name) not in free
    ]
    if found:
        raise PluginError(
            f"{wheel.name} {wheel.version} needs {', '.join(found)}. Installing a plugin never "
            f"replaces other packages.",
            hint="Ask its author for a compatible version, or install it in its own environment.",
        )


def _dependents_text(name: str, environment: Environment) -> str:
    users = environment.dependents(name)
    return f"which {', '.join(users[:3])} needs" if users else "which was there before"


def require_no_overlap(wheels: Iterable[Wheel], environment: Environment, free: Collection[str]) -> None:
    """Raise PluginError when a wheel would change or shadow files of other distributions.

    Args:
        wheels: the wheels to install.
        environment: the installed distributions.
        free: the distributions that may be replaced: the plugin, and its exclusive dependencies.
    """
    for wheel in wheels:
        require_free_name(wheel, environment, free)
        _require_no_startup_code(wheel)
        _require_one_distribution(wheel)
        _require_own_entry_points(wheel, environment)
        _require_own_modules(wheel, environment)
        _require_own_files(wheel, environment)


def require_free_name(wheel: DistributionInfo, environment: Environment, free: Collection[str]) -> None:
    """Raise PluginError when a distribution would replace the platform or another distribution."""
    if wheel.name in environment.platform:
        raise PluginError(
            f"{wheel.name} belongs to the platform, and installing a plugin never replaces the platform.",
            hint="Its author must choose another name. To upgrade the platform, upgrade its checkout.",
        )
    if wheel.name not in free and environment.version(wheel.name) is not None:
        raise PluginError(
            f"{wheel.name} {environment.version(wheel.name)} would be replaced by {wheel.version}.",
            hint="Ask its author for a version that is compatible with the installed packages.",
        )


def require_as_shown(shown: DistributionInfo, wheel: Wheel) -> None:
    """Raise PluginError when the build result differs from what a person was shown and agreed to."""
    description = {
        "name": (shown.name, wheel.name),
        "version": (shown.version, wheel.version),
        "entry points": (shown.entry_points, wheel.entry_points),
        "requirements": (normal_requirements(shown.requires), normal_requirements(wheel.requires)),
        "manifest": (shown.manifest, wheel.manifest),
    }
    if shown.version == DYNAMIC_VERSION:
        del description["version"]
    other = [what for what, (before, after) in description.items() if before != after]
    if other:
        raise PluginError(
            f"The build of {shown.name} differs from what you were shown: another {', another '.join(other)}.",
            hint="Nothing was installed. The build must produce what pyproject.toml and the manifest declare.",
        )


def _require_no_startup_code(wheel: Wheel) -> None:
    """Refuse files that run at Python's start. The check uses the installed paths, because an archive's data folder
    may install into site-packages.
    """
    tops = {parts[0] for parts in wheel.site_paths if parts}
    early = {name for name in tops if name.partition(".")[0] in AT_START}
    early |= {place.name for place in wheel.places if place.suffix == ".pth"}
    if early:
        raise PluginError(
            f"{wheel.name} would run code at the start of every Python of this environment "
            f"({', '.join(sorted(early))}).",
            hint="A plugin's code may run only when a worker loads it. Report this to its author.",
        )


def _require_one_distribution(wheel: Wheel) -> None:
    """Refuse a second metadata folder: it would be a second distribution, which was not shown to a person."""
    tops = {parts[0] for parts in wheel.site_paths if parts}
    for name in sorted(tops - {wheel.info}):
        if name.lower().endswith((".dist-info", ".egg-info")):
            raise PluginError(
                f"{wheel.name} also contains the metadata of another distribution ({name}).",
                hint="A wheel must be one distribution. Report this to its author.",
            )


def _require_own_entry_points(wheel: Wheel, environment: Environment) -> None:
    """Refuse an entry point that another distribution also has. A lookup returns the first one of a name;
    OpenTelemetry looks up its entry points at the start of every worker.
    """
    wanted = {
        (group, normal_name(name))
        for group, names in wheel.entry_points.items()
        for name in names
        if group not in SCRIPTS
    }
    for other, dist in environment.distributions.items():
        for point in dist.entry_points if other != wheel.name else ():
            if (point.group, normal_name(point.name)) in wanted:
                raise PluginError(
                    f"{wheel.name} has an entry point {point.name} in the group {point.group}, as {other} has.",
                    hint="It could replace the other one. Report this to its author.",
                )


def _require_own_modules(wheel: Wheel, environment: Environment) -> None:
    """Refuse modules of other distributions. A regular package belongs to one distribution. A namespace package may
    belong to several, but none of them may turn it into a regular package.
    """
    own, shown = environment.files(wheel.name), environment.modules(wheel.name)
    for parts in sorted(set(wheel.site_paths)):
        if parts and parts[0].partition(".")[0] not in shown and (name := _unowned_module(parts, own)):
            raise PluginError(
                f"{wheel.name} contains a module {name} that another installed package provides.",
                hint="It would replace the other module. Report this to its author.",
            )


def _unowned_module(parts: tuple[str, ...], own: Collection[Path]) -> str | None:
    """Return the name of the module of another distribution that a file at this path would replace or extend; None
    when there is none.
    """
    *folders, file = parts
    stem = file.partition(".")[0]
    is_module = file.endswith(tuple(all_suffixes()))
    names = [*folders, *([stem] if is_module and stem != "__init__" else [])]
    path = None
    for depth in range(1, len(names) + 1):
        name = ".".join(names[:depth])
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
        whole = is_module and depth == len(names)
        files = [Path(spec.origin)] if spec.origin else _files_in(path) if whole else []
        if any(file.resolve() not in own for file in files):
            return name
    return None


def _files_in(folders: Iterable[str] | None) -> Iterator[Path]:
    for folder in folders or ():
        yield from (file for file in Path(folder).rglob("*") if file.is_file() and file.suffix != ".pyc")


def _require_own_files(wheel: Wheel, environment: Environment) -> None:
    own = environment.files(wheel.name)
    for place in wheel.places:
        if ".." in place.parts or (place.exists() and place.resolve() not in own):
            raise PluginError(
                f"{wheel.name} would overwrite {place.name} in {place.parent}.", hint="Tell its author."
            )
