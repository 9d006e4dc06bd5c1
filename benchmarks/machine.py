"""The machine that a figure was measured on, what our processes took of it, and what others did meanwhile."""

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from time import perf_counter

import psutil


def cores() -> int:
    """How many cores this run may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_machine() -> str:
    """The machine, in a line."""
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{cores()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}"
    )


def children() -> list[int]:
    """The processes that this one has started, the last one last."""
    return [child.pid for child in sorted(psutil.Process().children(), key=psutil.Process.create_time)]


def resident_mib(pid: int) -> float:
    """MiB resident in the process."""
    return float(psutil.Process(pid).memory_info().rss) / 2**20


def cpu_seconds(pid: int) -> float:
    """Seconds of CPU that the process has used, its ended children's excluded."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


class CpuUsage:
    """What processes, by name, used of the CPU between two moments, and what everybody else did."""

    def __init__(self, ours: Mapping[str, int], others_of_ours: Mapping[str, int]) -> None:
        self._ours = ours
        known = set(ours.values())
        self._all = {**{str(pid): pid for pid in others_of_ours.values() if pid not in known}, **ours}
        self._before = {name: cpu_seconds(pid) for name, pid in self._all.items()}
        self._busy = _busy()
        self._began = perf_counter()

    def seconds(self) -> dict[str, float]:
        """Seconds of CPU by process, since the beginning."""
        return {name: cpu_seconds(pid) - self._before[name] for name, pid in self._ours.items()}

    def all_seconds(self) -> float:
        """Seconds of CPU of all processes of ours, since the beginning."""
        return sum(cpu_seconds(pid) - self._before[name] for name, pid in self._all.items())

    def others(self) -> float:
        """How many cores were busy with what is none of ours, on average since the beginning."""
        return max(0.0, _busy() - self._busy - self.all_seconds()) / (perf_counter() - self._began)


def _busy() -> float:
    """Seconds of CPU that this machine has used since it started."""
    times = psutil.cpu_times()
    return float(
        times.user + times.nice + times.system + getattr(times, "irq", 0) + getattr(times, "softirq", 0)
    )
