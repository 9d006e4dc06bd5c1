"""Conditions of schedules: a value of the machine compared with a number, such as ``memory_percent > 80``."""

import operator
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

_CONDITION = re.compile(r"\s*(\w+)\s*(>=|<=|==|>|<)\s*(-?\d+(?:\.\d+)?)\s*")

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq}
)


def condition_problem(condition: str) -> str:
    """Return what is wrong with a condition; "" for a valid and for an empty one."""
    found = _CONDITION.fullmatch(condition)
    if not condition or (found is not None and found[1] in _VALUES):
        return ""
    return (
        f"{condition!r} is no condition: write one of {', '.join(_VALUES)}, one of > >= < <= ==, and a number"
    )


def condition_holds(condition: str) -> bool:
    """Report whether a valid condition is true now; an empty one is.

    Raises:
        OSError: the machine does not tell the value.
    """
    found = _CONDITION.fullmatch(condition)
    if found is None:
        return not condition
    return _COMPARISONS[found[2]](_VALUES[found[1]](), float(found[3]))


def _memory_percent() -> float:
    """Return how much of the machine's memory is in use."""
    lines = (line.partition(":") for line in Path("/proc/meminfo").read_text().splitlines())
    values = {name: float(rest.split()[0]) for name, _, rest in lines}
    return 100.0 * (1.0 - values["MemAvailable"] / values["MemTotal"])


def _disk_percent() -> float:
    """Return how much of the disk with the working folder is in use."""
    usage = shutil.disk_usage(".")
    return 100.0 * usage.used / usage.total


def _load() -> float:
    """Return the average number of running programs of the last minute, for each processor."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def _uptime() -> float:
    """Return the seconds since the machine started."""
    return float(Path("/proc/uptime").read_text().split()[0])


_VALUES: Mapping[str, Callable[[], float]] = MappingProxyType(
    {"memory_percent": _memory_percent, "disk_percent": _disk_percent, "load": _load, "uptime": _uptime}
)
