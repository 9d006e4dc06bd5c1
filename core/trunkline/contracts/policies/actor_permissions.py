"""The permissions that a request carries, as ``X-Actor-Permissions`` writes them: ``memory:*,tools:*``. Pure.

These permissions only restrict: the block's table and the owner's policies decide what a block may do, and a request
cannot extend that.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

ALL = "*"


@dataclass(frozen=True, slots=True)
class ActorPermissions:
    """Scopes such as ``tools:read_*`` and ``memory:/finances/*``; ``*`` alone is every scope.

    Guarantees: a scope that cannot be parsed permits nothing. The methods are pure.

    Not guaranteed: that what is permitted here is permitted. Policies and the block's permissions decide that.
    """

    scopes: tuple[str, ...] = (ALL,)

    @classmethod
    def parse(cls, header: str) -> "ActorPermissions":
        """Parse a header, in which commas separate the scopes. Raises nothing."""
        return cls(tuple(scope for one in header.split(",") if (scope := one.strip())))

    def intersect(self, scopes: Iterable[str]) -> tuple[str, ...]:
        """Return the scopes that are in both sets. A scope of one set is kept if a scope of the other set includes
        it. Raises nothing.
        """
        given = tuple(scopes)
        theirs = (one for one in given if any(_includes(own, one) for own in self.scopes))
        own = (one for one in self.scopes if any(_includes(wide, one) for wide in given))
        return tuple(dict.fromkeys((*theirs, *own)))

    def allows_tool(self, *names: str) -> bool:
        """Report whether a tool may be called. ``names`` are all names of the tool. Raises nothing."""
        return any(fnmatchcase(name, pattern) for pattern in self._of("tools") for name in names)

    def allows_memory(self, path: str, whole: bool = False) -> bool:
        """Report whether a path from the memory root may be accessed; with ``whole``, also everything below it. Raises
        nothing.
        """
        return any(_covers(pattern, path, whole) for pattern in self._of("memory"))

    def _of(self, area: str) -> Iterable[str]:
        for scope in self.scopes:
            name, _, pattern = scope.partition(":")
            if scope == ALL or (name == area and pattern):
                yield pattern or ALL


def _includes(wide: str, narrow: str) -> bool:
    return wide in (ALL, narrow, f"{narrow.partition(':')[0]}:{ALL}")


def _covers(pattern: str, path: str, whole: bool) -> bool:
    """Report whether a pattern covers a path. A pattern is ``*``, one path, or ``/folder/*`` for everything below a
    folder. Only whole names match.
    """
    if pattern == ALL:
        return True
    folder = pattern.removesuffix(ALL)
    if folder == pattern:
        return path == pattern and not whole
    return folder.endswith("/") and f"{path.rstrip('/')}/".startswith(folder)
