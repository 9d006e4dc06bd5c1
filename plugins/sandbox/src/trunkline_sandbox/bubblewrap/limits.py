"""Holds a program to its limits before it begins: by a control group where there can be one, and by limits of each
process besides."""

import os
import resource
from contextlib import suppress

from trunkline import SandboxLimits, ToolError
from trunkline_sandbox.bubblewrap.cgroups import CgroupRoot, ControlGroup

MIB = 1024 * 1024
FILES = 1024
ROOT_UNSUPPORTED = (
    "The kernel does not limit the number of root's processes (RLIMIT_NPROC), and no control group can be created. "
    "Run Trunkline as an ordinary user, or let it write to /sys/fs/cgroup."
)

LARGEST_FILE = 1024 * MIB
"""No file that a program writes grows beyond this."""


def apply_limits(process: int, limits: SandboxLimits, place: CgroupRoot | None) -> ControlGroup | None:
    """Hold the process, and all that it will begin, to these limits.

    Raises:
        OSError: that cannot be done.
        ToolError: root's processes could not be bounded in number.
    """
    if place is None and os.geteuid() == 0:
        raise ToolError(ROOT_UNSUPPORTED, kind="unsupported")
    group = ControlGroup(place, limits) if place is not None else None
    try:
        if group is not None:
            group.add(process)
        _set_rlimits(process, limits, alone=group is None)
    except OSError:
        if group is not None:
            group.remove()
        raise
    return group


def _set_rlimits(process: int, limits: SandboxLimits, *, alone: bool) -> None:
    """Limits of each process; those of memory and number stand in for a group where there is none."""
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: FILES,
        resource.RLIMIT_FSIZE: LARGEST_FILE,
        resource.RLIMIT_MEMLOCK: 8 * MIB,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NPROC: limits.processes + 1,
    }
    if alone:
        wanted[resource.RLIMIT_DATA] = limits.memory * MIB
        _set_affinity(process, limits.cpus)
    for kind, most in wanted.items():
        allowed = resource.prlimit(process, kind)[1]
        bound = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.prlimit(process, kind, (bound, bound))


def _set_affinity(process: int, cpus: float) -> None:
    """As many processors as its share, rounded up; which, its number decides, so that programs spread."""
    all_of_them = sorted(os.sched_getaffinity(0))
    count = min(len(all_of_them), max(1, int(-(-cpus // 1))))
    first = process % len(all_of_them)
    chosen = {all_of_them[(first + at) % len(all_of_them)] for at in range(count)}
    with suppress(OSError):
        os.sched_setaffinity(process, chosen)
