"""The installed distributions and their dependencies, from metadata only."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from trunkline.contracts.hooks import PROJECT


@dataclass(frozen=True)
class Environment:
    """The distributions of this Python by name."""

    distributions: dict[str, Distribution]

    @classmethod
    def current(cls) -> "Environment":
        """Return the environment of this process."""
        found: dict[str, Distribution] = {}
        for dist in distributions():
            if dist.name:
                found.setdefault(canonicalize_name(dist.name), dist)
        return cls(found)

    @cached_property
    def platform(self) -> frozenset[str]:
        """The platform: its own distribution, its bundled distributions, and all their dependencies."""
        return frozenset(self.closure([PROJECT], extras=True))

    def version(self, name: str) -> str | None:
        """Return the installed version; None when the distribution is not installed."""
        return self.distributions[name].version if name in self.distributions else None

    def closure(self, names: Iterable[str], *, extras: bool = False) -> set[str]:
        """Return the installed distributions among these names and their dependencies."""
        known: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in known and name in self.distributions:
                known.add(name)
                waiting += [canonicalize_name(need.name) for need in self._needs(name, extras=extras)]
        return known

    def dependents(self, name: str, *, besides: Iterable[str] = ()) -> list[str]:
        """Return the names of the distributions that depend on this one."""
        return sorted(
            other
            for other in set(self.distributions) - set(besides) - {name}
            if name in {canonicalize_name(need.name) for need in self._needs(other, extras=True)}
        )

    def conflicts(self, requires: Iterable[str]) -> Iterator[tuple[Requirement, str]]:
        """Yield the requirements that an installed distribution does not meet, each with the installed version."""
        for need in _parsed(requires):
            version = self.version(canonicalize_name(need.name))
            if version is None or (need.marker is not None and not need.marker.evaluate({"extra": ""})):
                continue
            if not need.specifier.contains(version, prereleases=True):
                yield need, version

    def files(self, name: str) -> set[Path]:
        """Return the files of a distribution."""
        dist = self.distributions.get(name)
        return {Path(str(dist.locate_file(file))).resolve() for file in dist.files or ()} if dist else set()

    def modules(self, name: str) -> set[str]:
        """Return the top-level packages that a plugin's entry points import."""
        dist = self.distributions.get(name)
        points = dist.entry_points.select(group=PROJECT) if dist else ()
        return {point.module.partition(".")[0] for point in points}

    def _needs(self, name: str, *, extras: bool) -> Iterator[Requirement]:
        for need in _parsed(self.distributions[name].requires or ()):
            if extras or need.marker is None or need.marker.evaluate({"extra": ""}):
                yield need


def _parsed(requires: Iterable[str]) -> Iterator[Requirement]:
    for text in requires:
        try:
            yield Requirement(text)
        except (
            InvalidRequirement
        ):  # an invalid requirement of an old package, which pip cannot resolve either
            continue
