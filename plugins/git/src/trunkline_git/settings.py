"""The section ``[plugins.git]``."""

from typing import Annotated

import msgspec

from trunkline import SandboxLimits


class GitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.git]``. ``protected_branches`` are the branches that no agent may force or delete on a remote,
    whatever the case of their letters. ``memory_mb`` is the memory limit of git, in MiB, ``timeout`` its time limit,
    in seconds.
    """

    protected_branches: tuple[str, ...] = ("main", "master", "develop", "production", "release")
    memory_mb: Annotated[int, msgspec.Meta(ge=16)] = 512
    timeout: Annotated[float, msgspec.Meta(ge=1, le=3600)] = 120.0

    def limits(self, network: bool = False) -> SandboxLimits:
        """Return the sandbox limits for git."""
        return SandboxLimits(timeout=self.timeout, memory=self.memory_mb, network=network)
