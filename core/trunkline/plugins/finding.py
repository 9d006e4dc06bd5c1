"""Where plugins come from: entry points, objects handed in, files in ``tool_sources``. Nothing is imported here."""

import re
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from trunkline.hookspecs import PROJECT
from trunkline.plugins import sources


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plugin that may be loaded. ``load`` imports it; ``text`` reads its source, importing nothing."""

    owner: str
    name: str
    version: str
    where: str
    load: Callable[[], object]
    text: Callable[[], str]

    def called(self, names: Iterable[str]) -> bool:
        """Whether one of the names, as a person writes them, means this plugin."""
        return bool({normal(name) for name in names} & {normal(self.owner), normal(self.name)})


def normal(name: str) -> str:
    """A distribution's name in its one normal spelling."""
    return re.sub(r"[-_.]+", "-", name).lower()


def candidates(extra: Iterable[object], folders: Iterable[Path]) -> list[Candidate]:
    """All plugins in load order: distributions by name, then what was handed in, then files. Owners are unique."""
    found = [*_installed(), *map(_handed_in, extra), *_files(folders)]
    taken: dict[str, int] = {}
    unique = []
    for candidate in found:
        count = taken[candidate.owner] = taken.get(candidate.owner, 0) + 1
        owner = candidate.owner if count == 1 else f"{candidate.owner}-{count}"
        unique.append(
            Candidate(
                owner, candidate.name, candidate.version, candidate.where, candidate.load, candidate.text
            )
        )
    return unique


def _installed() -> list[Candidate]:
    points = {(point.dist.name if point.dist else point.name, point.name): point for point in _points()}
    owners = [owner for owner, _ in points]
    found = []
    for (dist, name), point in sorted(points.items(), key=lambda entry: (normal(entry[0][0]), entry[0][1])):
        owner = normal(dist) if owners.count(dist) == 1 else f"{normal(dist)}:{name}"
        version = point.dist.version if point.dist else ""
        found.append(Candidate(owner, name, version, point.value, point.load, _text_of(point)))
    return found


def _points() -> Iterable[EntryPoint]:
    return entry_points(group=PROJECT)


def _text_of(point: EntryPoint) -> Callable[[], str]:
    def text() -> str:
        top = point.module.partition(".")[0]
        spec = PathFinder.find_spec(top)
        if spec is None:
            return ""
        folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
        files = [file for folder in folders for file in folder.rglob("*.py")] or [Path(spec.origin or "")]
        return "\n".join(file.read_text(errors="replace") for file in files if file.is_file())

    return text


def _handed_in(plugin: object) -> Candidate:
    kind = plugin if isinstance(plugin, types.ModuleType | type) else type(plugin)
    name = kind.__name__
    return Candidate(name, name, "", "handed in", lambda: plugin, str)


def _files(folders: Iterable[Path]) -> Iterator[Candidate]:
    for folder in folders:
        if not folder.is_dir():
            yield Candidate(f"folder:{folder}", folder.name, "", str(folder), sources.absent(folder), str)
            continue
        for file in sources.files_in(folder):
            yield Candidate(
                f"file:{file.stem}", file.stem, "", str(file), sources.loader(file), file.read_text
            )
