"""The fixture of the sandbox contract: a workspace beside a secret, and programs that run in the sandbox."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import pytest

from trunkline.contracts.sandbox.program_request import DEFAULT_LIMITS, SandboxLimits
from trunkline.contracts.sandbox.sandbox import Sandbox, SandboxProcess, SandboxResult
from trunkline.testing.contract_suite import ContractSuite

SECRET = "a-secret-of-the-host"

HEARTBEAT_SCRIPT = 'trap "" TERM HUP; (setsid sh -c "while :; do echo x >> beat; sleep 0.1; done" &) ; '
"""Starts a process that outlives its parent, ignores signals to end, and writes a heartbeat that is visible outside."""


class SandboxFixture(ContractSuite, ABC):
    """Inherit from this class and implement ``sandbox``. ``grace`` is the number of seconds after which ended
    programs must be gone. ``flood`` is the number of bytes that the test program with too much output prints.
    ``python`` names an interpreter in the sandbox for the attacks that need one; without it they are skipped.
    ``python_files`` are the files that the interpreter needs.
    """

    python: str | None = None
    python_files: Mapping[str, Path] = MappingProxyType({})
    grace: float = 5.0
    flood: int = 1_000_000_000

    @abstractmethod
    def sandbox(self, home: Path) -> Sandbox:
        """Return a backend for the programs of this home. Skip the test where the backend cannot work."""

    @asynccontextmanager
    async def opened(self, base: Path) -> AsyncIterator[Sandbox]:
        """Yield the backend of a test. Override this method to close resources afterwards."""
        yield self.sandbox(base / "home")

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Path:
        """Return an empty workspace beside a secret."""
        (tmp_path / "secret.txt").write_text(SECRET)
        (tmp_path / "workspace").mkdir()
        return tmp_path / "workspace"

    async def shell(self, workspace: Path, script: str, **options: Any) -> SandboxResult:
        """Run a shell script and return its result."""
        async with self.opened(workspace.parent) as sandbox:
            return await sandbox.run(("sh", "-c", script), workspace=workspace, env={}, **options)

    async def assert_stopped(self, workspace: Path) -> None:
        """Assert that no process of ``HEARTBEAT_SCRIPT`` is alive: there is no heartbeat for a second."""
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
        """Yield a running shell script."""
        async with self.opened(workspace.parent) as sandbox:
            process = await sandbox.start(("sh", "-c", script), workspace=workspace, env={}, limits=limits)
            async with process:
                yield process

    async def wait_beating(self, workspace: Path) -> None:
        """Wait until ``HEARTBEAT_SCRIPT`` is running."""
        with anyio.fail_after(60):
            while not (workspace / "beat").exists():  # noqa: ASYNC110 another process creates the file
                await anyio.sleep(0.05)
