"""A program in a container. When the container's first process ends, the kernel ends all others in it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import msgspec

from trunkline.abc.sandbox import SandboxProcess
from trunkline.errors import ToolError
from trunkline_sandbox.docker.body import Inspected
from trunkline_sandbox.docker.engine import Engine, EngineError
from trunkline_sandbox.docker.streams import Wire

KILLED = 137
"""128 and the number of SIGKILL, as a shell tells of it."""


class Contained(SandboxProcess):
    """What ``Docker.start`` gives. ``away`` removes the container, at once or a little later."""

    def __init__(
        self, engine: Engine, container: str, wire: Wire, away: Callable[[str], Awaitable[None]]
    ) -> None:
        self.stdin, self.stdout, self.stderr = wire.stdin, wire.stdout, wire.stderr
        self._engine = engine
        self._container = container
        self._wire = wire
        self._away = away
        self._code: int | None = None
        self._over = False
        self._ending = anyio.Lock()

    async def wait(self) -> int | None:
        """See ``SandboxProcess``."""
        if not self._over:
            try:
                await self._engine.call("POST", f"/containers/{self._container}/wait")
            except EngineError as error:
                if error.status != 404:  # somebody has removed it: panic
                    raise ToolError(f"The Docker engine fails: {error}") from error
            with anyio.CancelScope(shield=True):
                await self._finish()
        return None if self.killed else self._code

    async def kill(self, why: str = "killed") -> None:
        """See ``SandboxProcess``."""
        with anyio.CancelScope(shield=True):
            if self._over:
                return
            if not self._wire.ended.is_set():
                with suppress(EngineError):
                    await self._engine.call("POST", f"/containers/{self._container}/kill")
                    self.killed = self.killed or why
            with suppress(EngineError):
                await self._engine.call("POST", f"/containers/{self._container}/wait")
            await self._finish()

    async def _finish(self) -> None:
        async with self._ending:
            if self._over:
                return
            try:
                found = await self._engine.call("GET", f"/containers/{self._container}/json")
                state = msgspec.convert(found, Inspected).state
                self._code = state.exit_code
                if state.exit_code == KILLED and state.out_of_memory:
                    self.killed = self.killed or "memory"
            except EngineError:
                self.killed = self.killed or "killed"
            await self._wire.finish()
            await self._away(self._container)
            self._over = True

    async def __aexit__(self, *raised: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.kill()
            await self._wire.aclose()
