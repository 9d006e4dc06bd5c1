"""Checks the version of the platform that a distribution requires in ``Requires-Dist``, before the distribution is
imported. Installers check it too, but not for plugins that were installed before an upgrade of the platform.
"""

import re
from functools import lru_cache

from trunkline.errors import PluginError

_NEED = re.compile(r"^trunkline\s*\(?\s*((?:[<>=!~]=?=?\s*[\w.*]+\s*,?\s*)+)\)?\s*(?:;.*)?$", re.IGNORECASE)
_CLAUSE = re.compile(r"([<>=!~]=?=?)\s*([\w.]+)")


@lru_cache(maxsize=256)  # all workers of a process check the same plugins; an error is not cached
def check_platform_version(required: tuple[str, ...], version: str) -> None:
    """Raise PluginError when one of the requirements concerns the platform and ``version`` does not meet it."""
    for line in required:
        found = _NEED.match(line)
        if found is None:
            continue
        for operator, wanted in _CLAUSE.findall(found[1]):
            if not _holds(operator, _numbers(version), _numbers(wanted)):
                raise PluginError(
                    f"It needs trunkline{operator}{wanted}, and this is {version}.",
                    hint="Install a version of the plugin that fits, or another version of Trunkline.",
                )


def _holds(operator: str, has: tuple[int, ...], required: tuple[int, ...]) -> bool:
    width = max(len(has), len(required))
    ours, theirs = (part + (0,) * (width - len(part)) for part in (has, required))
    match operator:
        case ">=":
            return ours >= theirs
        case ">":
            return ours > theirs
        case "<=":
            return ours <= theirs
        case "<":
            return ours < theirs
        case "!=":
            return ours != theirs
        case "~=":
            return ours >= theirs and has[: len(required) - 1] == required[:-1]
        case _:
            return ours == theirs


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version's release. Suffixes (rc1, .dev0) are not compared."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in release[0].split(".")) if release else (0,)
