"""Fetching the wheels that a plugin would bring, into a folder of their own. Installs nothing."""

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
    """A plugin that could be installed, and what would come with it."""

    plugin: Wheel | Project
    dependencies: tuple[Wheel, ...]
    source: Literal["index", "wheel", "folder"]
    replaces: str | None
    replaceable: frozenset[str]
    """The distributions that it may replace."""


def resolve(pip: Pip, wanted: str, folder: Path, pins: Mapping[str, Pin]) -> InstallPlan:
    """Fetch a plugin, ``NAME[==VERSION]``, a wheel or a folder with a project, and what it needs that is not here.

    Nothing of it is run: from an index only wheels are taken, and a folder is only read, because a build would run
    code before anybody has agreed.

    Args:
        pip: The pip to fetch with.
        wanted: What the person asked for.
        folder: An empty folder for the wheels.
        pins: What was installed before: what an earlier version of this plugin brought may be replaced with it.

    Raises:
        PluginError: it cannot be had, is no plugin, or does not go with what is installed.
    """
    environment = Environment.current()
    plugin, source = _plugin(pip, wanted, folder)
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
    """The offer with the wheel that was built of its project.

    Raises:
        PluginError: the wheel is not what a person was shown before it was built, or must not come in.
    """
    wheel = read_wheel(file)
    checks.require_as_shown(offer.plugin, wheel)
    checks.require_no_overlap([wheel], Environment.current(), offer.replaceable)
    return replace(offer, plugin=wheel)


def _replaceable(name: str, pins: Mapping[str, Pin], environment: Environment) -> set[str]:
    """Return the distributions that may be replaced: the plugin, and those that were installed with it and that nothing
    else needs."""
    free = {name, *(pins[name].brought if name in pins else ())} - environment.platform
    while needed := {one for one in free - {name} if environment.dependents(one, besides=free)}:
        free -= needed
    return free | {name}


def _plugin(
    pip: Pip, wanted: str, folder: Path
) -> tuple[Wheel | Project, Literal["index", "wheel", "folder"]]:
    if "://" in wanted:
        raise PluginError(
            "Plugins cannot be installed from a URL.", hint="Download it, inspect it, and give its path."
        )
    path = Path(wanted).expanduser()
    if path.is_dir():
        return read_project(path), "folder"
    if path.suffix == ".whl":
        if not path.is_file():
            raise PluginError(f"There is no file {path}.", hint="Give the wheel's path.")
        return read_wheel(Path(shutil.copy(path, folder))), "wheel"
    asked = ("download", *_wheels_only(folder), "--no-deps", _requirement(wanted))
    return read_wheel(_fetch_wheel(pip, folder, *asked)), "index"


def _requirement(wanted: str) -> str:
    try:
        return str(Requirement(wanted))
    except InvalidRequirement:
        raise PluginError(
            f"{wanted!r} is neither the name of a distribution nor an existing wheel or folder.",
            hint="Give NAME, NAME==VERSION, or the path of a wheel or of a folder with a pyproject.toml.",
        ) from None


def _wheels_only(folder: Path) -> tuple[str, ...]:
    return ("--only-binary", ":all:", "--dest", str(folder))


def _fetch_wheel(pip: Pip, folder: Path, verb: str, *arguments: str) -> Path:
    """The wheel that a run of pip puts into the folder."""
    before = set(folder.iterdir())
    done = pip.fetch(verb, *arguments)
    fresh = [file for file in folder.iterdir() if file not in before and file.suffix == ".whl"]
    if done.returncode or len(fresh) != 1:
        raise _failure(f"{arguments[-1]} cannot be had", done)
    return fresh[0]


def _fetch_dependencies(
    pip: Pip, plugin: Wheel | Project, folder: Path, environment: Environment, free: set[str]
) -> list[Wheel]:
    """The wheels that pip would install with the plugin while everything else stays as it is."""
    wanted = [str(plugin.file)] if isinstance(plugin, Wheel) else list(plugin.requires)
    if not wanted:
        return []
    kept = folder / "constraints.txt"
    kept.write_text(
        "".join(f"{name}=={dist.version}\n" for name, dist in environment.found.items() if name not in free)
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
        raise _failure(f"What {plugin.name} needs does not go with what is installed, or cannot be had", done)
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
