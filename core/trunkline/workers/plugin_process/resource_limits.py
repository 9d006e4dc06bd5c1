"""The resource limits of the process, and its end together with its parent. Fully supported on Linux, partially
elsewhere.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys

from trunkline.config.plugin_host import PluginHostSettings

_PR_SET_PDEATHSIG = 1
MIB = 1024 * 1024
FILES = 4096


def apply_limits(hosting: PluginHostSettings) -> None:
    """Apply the limits to this process and its children. Limits that the system does not support are skipped."""
    memory = hosting.isolation_memory * MIB
    for kind, limit in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit, limit))
    with contextlib.suppress(OSError):
        os.nice(hosting.isolation_nice)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies. Linux only."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
