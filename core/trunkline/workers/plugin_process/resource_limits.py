"""What the process may take of the machine, and that it dies with whoever started it. Linux and, in part, others."""

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
    """Take the limits on, for this process and whatever it starts. Those the system does not know are left out."""
    memory = hosting.isolation_memory * MIB
    for kind, most in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
    with contextlib.suppress(OSError):
        os.nice(hosting.isolation_nice)


def die_with_parent() -> None:
    """Have the system kill this process when the one that started it dies. Linux only."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
