"""Test whether bubblewrap works here by running it, and suggest a remedy when it does not."""

import platform
import shutil
import sys
import tempfile
from pathlib import Path

from trunkline import Sandbox, SandboxLimits, ToolError
from trunkline.api.seccomp import ARCHITECTURES

MISSING = "Install bubblewrap (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)."
NOT_LINUX = "bubblewrap is for Linux. Use Docker here."
UNKNOWN_MACHINE = f"There is no seccomp filter for {platform.machine()}. Use Docker here."

_REMEDIES = (
    (
        ("mount proc",),
        "Parts of /proc are hidden or covered here, so no new one can be mounted: run a container with --security-opt "
        "systempaths=unconfined, a systemd unit without ProtectKernelTunables, or use the Docker backend.",
    ),
    (
        ("uid map", "user namespace", "new namespace", "Operation not permitted"),
        "Let ordinary users create user namespaces: as root, sysctl -w user.max_user_namespaces=15000; where there are "
        "such settings also kernel.unprivileged_userns_clone=1 (Debian) and "
        "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu). In a container: run it with --security-opt "
        "seccomp=unconfined --security-opt systempaths=unconfined, or use the Docker backend.",
    ),
)


async def unavailable_reason(sandbox: Sandbox) -> str | None:
    """Run ``true`` in it. What to do when that fails, in a sentence."""
    if sys.platform != "linux":
        return NOT_LINUX
    if shutil.which("bwrap") is None:
        return MISSING
    if platform.machine() not in ARCHITECTURES:
        return UNKNOWN_MACHINE
    with tempfile.TemporaryDirectory(prefix="trunkline-probe-") as folder:
        try:
            done = await sandbox.run(
                ("true",), workspace=Path(folder), env={}, limits=SandboxLimits(timeout=10.0)
            )
        except (ToolError, OSError) as error:
            return with_remedy(str(error))
    return None if done.exit_code == 0 else with_remedy(done.stderr.decode(errors="replace"))


def with_remedy(message: str) -> str:
    """Return bubblewrap's message with its remedy."""
    for signs, hint in _REMEDIES:
        if any(sign in message for sign in signs):
            return f"{message.strip()} {hint}"
    return f"bubblewrap does not work here: {message.strip()}"
