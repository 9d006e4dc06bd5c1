"""Fetches the wheels of a plugin and its dependencies into a separate folder. Installs nothing."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from trunkline.cli.install import checks
from trunkline.cli.install.environment import Environment
from trunkline.cli.install.pip import Pip
from trunkline.cli.install.project import Project, read_project
from trunkline.cli.install.wheel import Wheel, read_wheel
from trunkline.errors import PluginError
from trunkline.plugins.pins import Pin

_SAID = re.compile(r"^(?:ERROR: |    )(?!ResolutionImpossible)(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """A plugin that can be installed, with the dependencies that would be installed too."""

    plugin: Wheel | Project
    dependencies: tuple[Wheel, ...]
    source: Literal["index", "wheel", "folder"]
    replaces: str | None
    replaceable: frozenset[str]
    """The distributions that the plugin may replace."""


def resolve(pip: Pip, target: str, folder: Path, pins: Mapping[str, Pin]) -> InstallPlan:
    """Fetch a plugin, given as ``NAME[==VERSION]``, a wheel or a project folder, and its missing dependencies.

    No code of them runs: only wheels are fetched from an index, and a folder is only read, because a build would run
    code before a person has agreed.

    Args:
        pip: the pip to fetch with.
        wanted: the plugin, as the person named it.
        folder: an empty folder for the wheels.
        pins: the installed plugins. Distributions that came with an earlier version of this plugin may be replaced.

    Raises:
        PluginError: the plugin cannot be fetched, is no plugin, or is not compatible with the installed
            distributions.
    """
    environment = Environment.current()
    plugin, source = _plugin(pip, target, folder)
    free = _replaceable(plugin.name, pins, environment)
    checks.require_plugin(plugin)
    checks.require_index_only(plugin)
    checks.require_free_name(plugin, environment, free)
    if isinstance(plugin, Wheel):
        checks.require_no_overlap([plugin], environment, free)
    checks.require_compatible(plugin, environment, free)
    found = _fetch_dependencies(pip, plugin, folder, environment, free)
    brings = tuple(wheel for wheel in found if wheel.name != plugin.name)
    checks.require_no_overlap(brings, environment, free)
    return InstallPlan(plugin, brings, source, environment.version(plugin.name), frozenset(free))


def with_built_wheel(offer: InstallPlan, file: Path) -> InstallPlan:
    """Return the plan with the wheel that was built from its project.

    Raises:
        PluginError: the wheel differs from what a person was shown before the build, or may not be installed.
    """
    wheel = read_wheel(file)
    checks.require_as_shown(offer.plugin, wheel)
    checks.require_no_overlap([wheel], Environment.current(), offer.replaceable)
    return replace(offer, plugin=wheel)


def _replaceable(name: str, pins: Mapping[str, Pin], environment: Environment) -> set[str]:
    """Return the distributions that may be replaced: the plugin, and those that were installed with it and that no
    other distribution needs.
    """
    free = {name, *(pins[name].brought if name in pins else ())} - environment.platform
    while needed := {one for one in free - {name} if environment.dependents(one, besides=free)}:
        free -= needed
    return free | {name}


def _plugin(
    pip: Pip, target: str, folder: Path
) -> tuple[Wheel | Project, Literal["index", "wheel", "folder"]]:
    if "://" in target:
        raise PluginError(
            "Plugins cannot be installed from a URL.", hint="Download it, inspect it, and give its path."
        )
    path = Path(target).expanduser()
    if path.is_dir():
        return read_project(path), "folder"
    if path.suffix == ".whl":
        if not path.is_file():
            raise PluginError(f"There is no file {path}.", hint="Give the wheel's path.")
        return read_wheel(Path(shutil.copy(path, folder))), "wheel"
    asked = ("download", *_wheels_only(folder), "--no-deps", _requirement(target))
    return read_wheel(_fetch_wheel(pip, folder, *asked)), "index"


def _requirement(target: str) -> str:
    try:
        return str(Requirement(target))
    except InvalidRequirement:
        raise PluginError(
            f"{target!r} is neither the name of a distribution nor an existing wheel or folder.",
            hint="Give NAME, NAME==VERSION, or the path of a wheel or of a folder with a pyproject.toml.",
        ) from None


def _wheels_only(folder: Path) -> tuple[str, ...]:
    return ("--only-binary", ":all:", "--dest", str(folder))


def _fetch_wheel(pip: Pip, folder: Path, verb: str, *arguments: str) -> Path:
    """Run pip, and return the wheel that it puts into the folder."""
    before = set(folder.iterdir())
    done = pip.fetch(verb, *arguments)
    fresh = [file for file in folder.iterdir() if file not in before and file.suffix == ".whl"]
    if done.returncode or len(fresh) != 1:
        raise _failure(f"{arguments[-1]} is not available", done)
    return fresh[0]


def _fetch_dependencies(
    pip: Pip, plugin: Wheel | Project, folder: Path, environment: Environment, free: set[str]
) -> list[Wheel]:
    """Fetch the wheels that pip would install with the plugin if no other installed distribution may change."""
    wanted = [str(plugin.file)] if isinstance(plugin, Wheel) else list(plugin.requires)
    if not wanted:
        return []
    kept = folder / "constraints.txt"
    kept.write_text(
        "".join(
            f"{name}=={dist.version}\n"
            for name, dist in environment.distributions.items()
            if name not in free
        )
    )
    report = folder / "report.json"
    asked = (
        "--dry-run",
        "--report",
        str(report),
        "--only-binary",
        ":all:",
        "--constraint",
        str(kept),
    )
    done = pip.fetch("install", *asked, *wanted)
    if done.returncode:
        raise _failure(
            f"The requirements of {plugin.name} conflict with installed packages or are not available", done
        )
    items = json.loads(report.read_text())["install"]
    lines = [_pinned(item) for item in items if _name(item) != plugin.name]
    return [_download(pip, folder, line) for line in lines]


def _name(item: dict[str, dict[str, str]]) -> str:
    return canonicalize_name(item["metadata"]["name"])


def _pinned(item: dict[str, dict[str, str]]) -> str:
    return f"{item['metadata']['name']}=={item['metadata']['version']}"


def _download(pip: Pip, folder: Path, pinned: str) -> Wheel:
    return read_wheel(_fetch_wheel(pip, folder, "download", *_wheels_only(folder), "--no-deps", pinned))


def _failure(what: str, done: subprocess.CompletedProcess[str]) -> PluginError:
    said = list(dict.fromkeys(line.strip() for line in _SAID.findall(done.stdout + "\n" + done.stderr)))
    detail = " / ".join(said[:6]) or done.stderr.strip()[-500:] or "pip did not say why"
    return PluginError(
        f"{what}. pip says: {detail}",
        hint="Check the name and the network. Only wheels are installed from an index.",
    )
