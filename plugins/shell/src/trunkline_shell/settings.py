"""The section ``[plugins.shell]``."""

from pathlib import Path
from typing import Annotated

import msgspec

from trunkline import SandboxLimits

Megabytes = Annotated[int, msgspec.Meta(ge=16)]
Count = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1024)]


class ShellSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.shell]``. ``memory_mb`` (in MiB), ``cpus`` and ``processes`` limit each program together with all
    processes that it starts. ``path`` names further folders with programs, such as ``/opt/tools/bin``; the sandbox
    must show them too (``[plugins.sandbox] readable_paths``). ``max_tasks`` is the number of background tasks that may
    run at once on this machine, ``task_timeout`` the time limit of each, in seconds.
    """

    memory_mb: Megabytes = 512
    cpus: Share = 1.0
    processes: Count = 64
    path: tuple[Path, ...] = ()
    max_tasks: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 8
    task_timeout: Annotated[float, msgspec.Meta(ge=1, le=7 * 86400)] = 4 * 3600.0

    def limits(self, timeout: float, network: bool = False) -> SandboxLimits:
        """The limits of a program with so many seconds."""
        return SandboxLimits(
            timeout=timeout,
            memory=self.memory_mb,
            cpus=self.cpus,
            processes=self.processes,
            network=network,
        )

    @property
    def env(self) -> dict[str, str]:
        """The environment of a program: no colours, no questions, no locks that only make looking quicker."""
        usual = ("/usr/local/bin", "/usr/bin", "/bin")
        return {
            "PATH": ":".join((*map(str, self.path), *usual)),
            "TERM": "dumb",
            "NO_COLOR": "1",
            "CI": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
        }
