"""Reads a project folder without running any of its code: its metadata and its build system."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trunkline._util.paths import Folder, PathRefused, open_beneath
from trunkline.cli.install.distribution import (
    SCRIPTS,
    DistributionInfo,
    plugin_packages,
    scan_source,
    valid_name,
)
from trunkline.errors import PluginError
from trunkline.plugins.manifest import MANIFEST_FILE, PluginManifest, parse_manifest

DYNAMIC_VERSION = "(its build settles it)"
"""The placeholder for a version that the build determines."""

BUILD_YOURSELF_HINT = (
    "Build a wheel of it in an environment that may be harmed (python -m build), then install the wheel."
)

MOST_SOURCE = 4 * 1024 * 1024
"""Largest number of bytes of source that are searched for hooks and effects."""

_TABLES = {"scripts": SCRIPTS[0], "gui-scripts": SCRIPTS[1]}
_FOLDERS = ("src/", "")
"""The folders of a project that may contain packages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(DistributionInfo):
    """A project that is not built yet. ``build_requires``, ``backend`` and ``backend_path`` are defined by PEP 517
    and 518: the requirements of the build, and the object that builds the project by running code.
    """

    folder: Path
    build_requires: tuple[str, ...]
    backend: str
    backend_path: tuple[str, ...]


def read_project(folder: Path) -> Project:
    """Read a project from its ``pyproject.toml`` and its manifest. Links out of the folder are not followed.

    Raises:
        PluginError: the project cannot be read, or its build would determine its name, its requirements or its entry
            points, which a person must see before the build runs.
    """
    with open_beneath(folder) as inside:
        return _read(inside, folder)


def _read(inside: Folder, folder: Path) -> Project:
    description = _pyproject(inside, folder)
    project = description.get("project")
    if not isinstance(project, dict):
        raise _unreadable(folder, "has no [project] table")
    late = {"name", "dependencies", "entry-points", *_TABLES} & set(project.get("dynamic", ()))
    if late:
        raise _unreadable(folder, f"leaves {', '.join(sorted(late))} to its build")
    name = valid_name(project.get("name"), str(folder))
    points = _points(project)
    return Project(
        folder=folder.resolve(),
        name=name,
        version=str(project.get("version", DYNAMIC_VERSION)),
        summary=str(project.get("description", "")),
        requires=_texts(project.get("dependencies", ()), folder),
        entry_points=points,
        manifest=_asks(inside, points, name),
        source_manifest=scan_source(_source(inside, points)),
        **_build(description.get("build-system"), folder),
    )


def _pyproject(inside: Folder, folder: Path) -> dict[str, Any]:
    text = _text(inside, "pyproject.toml")
    if text is None:
        raise _unreadable(folder, "has no pyproject.toml")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(folder, f"has a pyproject.toml that cannot be read: {error}") from error


def _build(table: Any, folder: Path) -> dict[str, Any]:
    """Return the build system of a ``pyproject.toml``. Without a table it is setuptools, as PEP 518 defines."""
    table = table if isinstance(table, dict) else {}
    return {
        "build_requires": _texts(table.get("requires", ("setuptools>=40.8.0",)), folder),
        "backend": str(table.get("build-backend", "setuptools.build_meta:__legacy__")),
        "backend_path": _texts(table.get("backend-path", ()), folder),
    }


def _points(project: dict[str, Any]) -> dict[str, dict[str, str]]:
    tables = dict(project.get("entry-points", {}))
    tables |= {group: project[key] for key, group in _TABLES.items() if project.get(key)}
    return {
        str(group): {str(name): str(point) for name, point in names.items()}
        for group, names in tables.items()
        if isinstance(names, dict)
    }


def _asks(inside: Folder, points: dict[str, dict[str, str]], owner: str) -> PluginManifest | None:
    for package in sorted(plugin_packages(points)):
        for folder in _FOLDERS:
            text = _text(inside, f"{folder}{package}/{MANIFEST_FILE}")
            if text is not None:
                return parse_manifest(text, owner)
    return None


def _source(inside: Folder, points: dict[str, dict[str, str]]) -> str:
    """Return the source of the packages that would be loaded, up to a size limit."""
    found: list[str] = []
    left = MOST_SOURCE
    for path in _modules(inside, plugin_packages(points)):
        text = _text(inside, path, limit=left)
        left -= len(text or "")
        found.append(text or "")
    return "\n".join(found)


def _modules(inside: Folder, packages: set[str]) -> Iterator[str]:
    for place in (f"{folder}{package}" for package in sorted(packages) for folder in _FOLDERS):
        yield f"{place}.py"
        if inside.exists(place):
            yield from (entry.path for entry in inside.walk(place) if entry.path.endswith(".py"))


def _text(inside: Folder, path: str, *, limit: int = MOST_SOURCE) -> str | None:
    """Return the text of a file; None when it is absent or may not be read."""
    try:
        return inside.read_bytes(path, limit=limit).decode(errors="replace")
    except (OSError, PathRefused):
        return None


def _texts(value: Any, folder: Path) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise _unreadable(folder, "has a list in pyproject.toml that is none of texts")
    return tuple(value)


def _unreadable(folder: Path, what: str) -> PluginError:
    return PluginError(
        f"{folder} {what}, so it cannot be inspected before its code runs.", hint=BUILD_YOURSELF_HINT
    )
