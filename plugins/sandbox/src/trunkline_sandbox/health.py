"""What ``trunkline doctor`` finds out about how programs are held here."""

import shutil
import sys
from pathlib import Path

import anyio.to_thread

from trunkline import HealthResult
from trunkline_sandbox.bubblewrap import groups

TUN = Path("/dev/net/tun")
"""What slirp4netns makes a device of."""


async def limits(backend: str) -> HealthResult:
    """Whether the limits of a program hold for all of its processes together."""
    if sys.platform != "linux" or backend == "docker":
        return HealthResult("ok", "Bubblewrap is not used here: Docker bounds what a program takes")
    place = await anyio.to_thread.run_sync(groups.find)
    if place is not None:
        return HealthResult("ok", f"Control groups (version {place.version}) hold the programs of bubblewrap")
    return HealthResult(
        "warning",
        "No control group can be made, so bubblewrap bounds the memory of each process, not of all of a program.",
        "Run Trunkline in a login session of its user, or as a unit of that user's systemd; root needs groups.",
    )


async def network(backend: str) -> HealthResult:
    """Whether a program can have a network without this machine's own services."""
    if sys.platform != "linux" or backend == "docker":
        return HealthResult("ok", "Bubblewrap is not used here: Docker makes the networks of programs")
    if shutil.which("slirp4netns") is None:
        return HealthResult(
            "warning",
            "slirp4netns is not installed, so bubblewrap's programs have no network, also where they are allowed one.",
            "Debian and Ubuntu: apt install slirp4netns; Fedora: dnf install slirp4netns. Or lend them this machine's "
            "own network for some minutes: trunkline permissions BLOCK --host-network 30",
        )
    if not TUN.exists():  # noqa: ASYNC240  a look at a device file
        return HealthResult(
            "warning",
            "There is no /dev/net/tun, so bubblewrap's programs have no network, also where they are allowed one.",
            "As root: modprobe tun. In a container: run it with --device /dev/net/tun.",
        )
    return HealthResult("ok", "A program's network leads to other hosts, not to what listens here")
