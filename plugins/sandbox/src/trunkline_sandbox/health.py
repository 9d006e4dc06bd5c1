"""What ``trunkline doctor`` finds out about how programs are held here."""

import sys

import anyio.to_thread

from trunkline import HealthResult
from trunkline_sandbox.bubblewrap import groups


async def limits() -> HealthResult:
    """Whether the limits of a program hold for all of its processes together."""
    if sys.platform != "linux":
        return HealthResult("ok", "Programs are held by Docker here")
    place = await anyio.to_thread.run_sync(groups.find)
    if place is not None:
        return HealthResult("ok", f"Control groups (version {place.version}) hold the programs of bubblewrap")
    return HealthResult(
        "warning",
        "No control group can be made, so bubblewrap bounds the memory of each process, not of all of a program.",
        "Let systemd run Trunkline with Delegate=yes, or run it in a login session of its user; root needs groups.",
    )
