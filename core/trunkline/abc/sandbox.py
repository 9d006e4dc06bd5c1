"""Where programs run. Without a sandbox, tools with the effect ``exec`` are refused: there is no silent downgrade."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of one run: seconds, MiB, CPUs, processes, bytes of output per stream."""

    timeout: float = 30.0
    memory: int = 512
    cpus: float = 1.0
    processes: int = 64
    output: int = 1_000_000
    network: bool = False


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """How the program ended. ``exit_code`` is None when it was killed at a limit, which ``killed`` names."""

    stdout: bytes
    stderr: bytes
    exit_code: int | None
    seconds: float
    killed: str = ""


class Sandbox(ABC):
    """A backend that isolates a program by the operating system."""

    name: str

    @abstractmethod
    async def unavailable(self) -> str | None:
        """None when it can be used here, else the sentence that says what to install or permit."""

    @abstractmethod
    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        limits: SandboxLimits = SandboxLimits(),
    ) -> SandboxResult:
        """Run the program with nothing but ``workspace`` writable and ``env`` as its environment."""
