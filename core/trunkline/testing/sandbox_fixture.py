"""The fixture of the sandbox contract: a workspace beside a secret, and programs that run in it."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import pytest

from trunkline.contracts.sandbox.sandbox import (
    DEFAULT_LIMITS,
    Sandbox,
    SandboxLimits,
    SandboxProcess,
    SandboxResult,
)
from trunkline.testing.contract_suite import ContractSuite

SECRET = "a-secret-of-the-host"

HEARTBEAT_SCRIPT = 'trap "" TERM HUP; (setsid sh -c "while :; do echo x >> beat; sleep 0.1; done" &) ; '
"""Begins something that outlives its parent, ignores being asked to end, and can be seen from outside to be alive."""


class SandboxFixture(ContractSuite, ABC):
    """Inherit and give ``sandbox``. ``grace`` is how many seconds the end of everything may take to be seen, ``flood``
    how many bytes the program prints that prints too much. ``python`` names an interpreter in the sandbox for the
    attacks that need one, which are skipped without it; ``python_files`` is what has to be given to it for that."""

    python: str | None = None
    python_files: Mapping[str, Path] = MappingProxyType({})
    grace: float = 5.0
    flood: int = 1_000_000_000

    @abstractmethod
    def sandbox(self, home: Path) -> Sandbox:
        """A backend for the programs of this home. Skip where it cannot work."""

    @asynccontextmanager
    async def opened(self, base: Path) -> AsyncIterator[Sandbox]:
        """The backend of a test, for what it has to close afterwards."""
        yield self.sandbox(base / "home")

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Path:
        """An empty workspace, beside a secret."""
        (tmp_path / "secret.txt").write_text(SECRET)
        (tmp_path / "workspace").mkdir()
        return tmp_path / "workspace"

    async def shell(self, workspace: Path, script: str, **given: Any) -> SandboxResult:
        """Run a shell script and return its result."""
        async with self.opened(workspace.parent) as sandbox:
            return await sandbox.run(("sh", "-c", script), workspace=workspace, env={}, **given)

    async def assert_stopped(self, workspace: Path) -> None:
        """Nothing that ``HEARTBEAT_SCRIPT`` began is alive: there is no beat for a second."""
        beat = workspace / "beat"
        with anyio.fail_after(self.grace + 2.0):
            before = -1
            while before != (now := beat.stat().st_size):
                before = now
                await anyio.sleep(1.0)

    @asynccontextmanager
    async def started(
        self, workspace: Path, script: str, limits: SandboxLimits = DEFAULT_LIMITS
    ) -> AsyncIterator[SandboxProcess]:
        """A script of the shell that runs."""
        async with self.opened(workspace.parent) as sandbox:
            process = await sandbox.start(("sh", "-c", script), workspace=workspace, env={}, limits=limits)
            async with process:
                yield process

    async def wait_beating(self, workspace: Path) -> None:
        """Wait until ``HEARTBEAT_SCRIPT`` is."""
        with anyio.fail_after(60):
            while not (workspace / "beat").exists():  # noqa: ASYNC110  another process makes it
                await anyio.sleep(0.05)
