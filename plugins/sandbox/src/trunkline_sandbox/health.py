"""The health checks of the sandbox on this machine."""

import shutil
import sys
from pathlib import Path

import anyio.to_thread

from trunkline import HealthResult
from trunkline_sandbox.bubblewrap import cgroups

TUN = Path("/dev/net/tun")
"""The device file from which slirp4netns creates a network device."""


async def limits_check(backend: str, workspace: int) -> HealthResult:
    """Report whether the limits of a program hold for all of its processes together, and what bounds its workspace."""
    bound = f"a workspace may hold {workspace} MiB"
    if sys.platform != "linux" or backend == "docker":
        held = f"Docker bounds the programs, and {bound}"
        return HealthResult("ok", f"Bubblewrap is not used here: {held}")
    place = await anyio.to_thread.run_sync(cgroups.find_root)
    if place is not None:
        held = f"Control groups (version {place.version}) limit the programs of bubblewrap"
        return HealthResult("ok", f"{held}; {bound}")
    return HealthResult(
        "warning",
        "No control group can be made, so programs of bubblewrap are looked at ten times a second, and ended when they "
        f"take more memory than they may; between two looks they may take more. Also, {bound}.",
        "Start it below the systemd of its user: systemd-run --user --scope trunkline up. In a unit of the system set "
        "Delegate=memory pids cpu and DelegateSubgroup=worker (systemd 254). A login session alone has no groups. "
        "Without groups, programs of root are refused.",
    )


async def network_check(backend: str) -> HealthResult:
    """Report whether a program can have a network without this machine's own services."""
    if sys.platform != "linux" or backend == "docker":
        return HealthResult("ok", "Bubblewrap is not used here: Docker makes the networks of programs")
    if shutil.which("slirp4netns") is None:
        return HealthResult(
            "warning",
            "slirp4netns is not installed, so bubblewrap's programs have no network, even where a network is allowed.",
            "Debian and Ubuntu: apt install slirp4netns; Fedora: dnf install slirp4netns. Or lend them this machine's "
            "own network for some minutes: trunkline permissions BLOCK --host-network 30",
        )
    if not TUN.exists():  # noqa: ASYNC240  a look at a device file
        return HealthResult(
            "warning",
            "There is no /dev/net/tun, so bubblewrap's programs have no network, even where a network is allowed.",
            "As root: modprobe tun. In a container: run it with --device /dev/net/tun.",
        )
    return HealthResult("ok", "A program's network reaches other hosts, but no service of this machine")
