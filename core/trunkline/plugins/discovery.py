"""Finds the plugins: entry points, objects passed by the caller, and files in ``tool_sources``. Imports none of
them.
"""

import os
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distributions, requires
from pathlib import Path

import trunkline
from trunkline.contracts.hooks import PROJECT
from trunkline.errors import PluginError
from trunkline.plugins import file_plugins
from trunkline.plugins.manifest import MANIFEST_FILE
from trunkline.plugins.validation import HookFunction, validate_plugin
from trunkline.plugins.version_check import check_platform_version


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plugin that may be loaded. ``load`` imports it. ``text`` reads its source, and ``manifest`` its
    ``trunkline-plugin.toml``, or None without one; neither imports code. ``validate`` returns the implementations of
    hooks in the loaded plugin, or raises PluginError.
    """

    owner: str
    name: str
    version: str
    where: str
    load: Callable[[], object]
    text: Callable[[], str]
    manifest: Callable[[], str | None] = lambda: None
    validate: Callable[[object], tuple[HookFunction, ...]] = validate_plugin

    @property
    def is_imported(self) -> bool:
        """Report whether the plugin's module is completely imported in this process."""
        module = sys.modules.get(self.where.partition(":")[0])
        spec = getattr(module, "__spec__", None)
        return spec is not None and not getattr(spec, "_initializing", False)

    def is_named(self, names: Iterable[str]) -> bool:
        """Report whether one of the names, in any spelling, means this plugin."""
        wanted = {normal_name(name) for name in names}
        return bool(wanted) and not wanted.isdisjoint((normal_name(self.owner), normal_name(self.name)))


def normal_name(name: str) -> str:
    """Return a distribution's name in its normalized spelling."""
    return re.sub(r"[-_.]+", "-", name).lower()


def find_candidates(extra: Iterable[object], folders: Iterable[Path]) -> list[Candidate]:
    """Return all plugins in load order: distributions by name, then passed objects, then files. Owners are unique.

    When two plugins declare the same name, the first keeps it. The platform's own distributions come first, so a
    plugin cannot take over ``read_file`` by having a name that sorts first.
    """
    found = [*_installed(_places()), *map(_object_candidate, extra), *_file_candidates(folders)]
    taken: dict[str, int] = {}
    unique = []
    for candidate in found:
        count = taken[candidate.owner] = taken.get(candidate.owner, 0) + 1
        unique.append(candidate if count == 1 else replace(candidate, owner=f"{candidate.owner}-{count}"))
    return unique


def _places() -> tuple[tuple[str, int], ...]:
    """Return the folders that contain distributions, each with the time of its last change."""
    return tuple((entry, _changed(entry)) for entry in sys.path)


def _changed(entry: str) -> int:
    try:
        return os.stat(entry).st_mtime_ns  # noqa: PTH116  # a Path of each entry would take most of the time
    except OSError:
        return 0


@lru_cache(maxsize=1)
def _installed(places: tuple[tuple[str, int], ...]) -> tuple[Candidate, ...]:
    """Return the plugins of all distributions. The result is cached, because all workers of a process find the same
    plugins and reading metadata is slow.
    """
    found: dict[tuple[str, str], Candidate] = {}
    for dist in distributions():
        for candidate in _of_distribution(dist):
            found.setdefault((candidate.owner, candidate.name), candidate)
    owners = [owner for owner, _ in found]
    return tuple(
        candidate if owners.count(owner) == 1 else replace(candidate, owner=f"{owner}:{name}")
        for (owner, name), candidate in sorted(found.items(), key=_own_first)
    )


def _own_first(item: tuple[tuple[str, str], Candidate]) -> tuple[bool, str, str]:
    (owner, name), _ = item
    return owner not in bundled_distributions(), owner, name


@lru_cache(maxsize=1)
def bundled_distributions() -> frozenset[str]:
    """Return the platform's own plugins, as the platform's metadata list them. A name prefix would prove nothing: any
    distribution may be called ``trunkline-something``.
    """
    try:
        needs = [line.partition(";") for line in requires(PROJECT) or ()]
    except PackageNotFoundError:
        return frozenset()
    return frozenset(normal_name(need.strip()) for need, _, marker in needs if "bundled" in marker)


def _of_distribution(dist: Distribution) -> Iterator[Candidate]:
    """Yield the plugins of one distribution. A distribution with damaged metadata yields a candidate whose load
    fails.
    """
    try:
        points = dist.entry_points.select(group=PROJECT)
        if not points:
            return
        about = dist.metadata  # each access parses the metadata again
        owner, version = normal_name(about["Name"]), about["Version"]
        needs = tuple(about.get_all("Requires-Dist") or ())
    except Exception as error:
        if f"[{PROJECT}]" in (text := dist.read_text("entry_points.txt") or ""):
            yield _damaged(str(getattr(dist, "_path", "a distribution")), error, text)
        return
    for point in points:
        plugin = _EntryPointPlugin(point, needs)
        yield Candidate(
            owner,
            point.name,
            version,
            point.value,
            plugin.load,
            plugin.text,
            plugin.manifest,
            plugin.validate,
        )


class _EntryPointPlugin:
    """The plugin of an entry point. The workers of a process share what is the same for all of them."""

    def __init__(self, point: EntryPoint, needs: tuple[str, ...]) -> None:
        self._point = point
        self._needs = needs
        self._validated: tuple[object, tuple[HookFunction, ...]] | None = None
        self._manifest: tuple[object, str] | None = None

    def load(self) -> object:
        """Import the plugin. Each worker has its own instance of a class."""
        check_platform_version(self._needs, trunkline.__version__)
        loaded = self._point.load()
        return loaded() if isinstance(loaded, type) else loaded

    def validate(self, plugin: object) -> tuple[HookFunction, ...]:
        """Return the implementations of hooks. They are determined once: other workers have the same module or object,
        or an instance of the same class.
        """
        loaded = self._point.load()
        if self._validated is None or self._validated[0] is not loaded:
            self._validated = loaded, validate_plugin(plugin)
        return self._validated[1]

    def text(self) -> str:
        """Return the source of the package."""
        spec = PathFinder.find_spec(self._point.module.partition(".")[0])
        if spec is None:
            return ""
        folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
        files = [file for folder in folders for file in folder.rglob("*.py")] or [Path(spec.origin or "")]
        return "\n".join(file.read_text(errors="replace") for file in files if file.is_file())

    def manifest(self) -> str | None:
        """Return the present text of the manifest, or None without one. A file that did not change is read once."""
        for file in self._manifest_files:
            with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                status = file.stat()
                stamp = (file, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
                if self._manifest is None or self._manifest[0] != stamp:
                    self._manifest = stamp, file.read_text(encoding="utf-8", errors="replace")
                return self._manifest[1]
        return None

    @cached_property
    def _manifest_files(self) -> tuple[Path, ...]:
        package = self._point.module.partition(".")[0]
        # An imported package knows its place. A search goes through all folders of all distributions.
        spec = getattr(sys.modules.get(package), "__spec__", None) or PathFinder.find_spec(package)
        found = spec.submodule_search_locations if spec else None
        return tuple(Path(folder, MANIFEST_FILE) for folder in found or ())


def _damaged(where: str, error: Exception, text: str) -> Candidate:
    def fail() -> object:
        raise PluginError(f"Its metadata cannot be read: {error!r}.", hint="Install it again.")

    name = Path(where).name.partition("-")[0]
    return Candidate(normal_name(name), name, "", where, fail, lambda: text)


def _object_candidate(plugin: object) -> Candidate:
    kind = plugin if isinstance(plugin, types.ModuleType | type) else type(plugin)
    name = kind.__name__
    return Candidate(name, name, "", "handed in", lambda: plugin, str)


def _file_candidates(folders: Iterable[Path]) -> Iterator[Candidate]:
    for folder in folders:
        if not folder.is_dir():
            yield Candidate(
                f"folder:{folder}",
                folder.name,
                "",
                str(folder),
                file_plugins.missing_folder_loader(folder),
                str,
            )
            continue
        for file in file_plugins.plugin_files(folder):
            yield Candidate(
                f"file:{file.stem}", file.stem, "", str(file), file_plugins.file_loader(file), file.read_text
            )
