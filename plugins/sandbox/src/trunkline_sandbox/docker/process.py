"""A program in a container, and the watch on the disk below its workspace, which no engine bounds.

When the container's first process ends, the kernel ends all others in it.
"""

from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
import msgspec

from trunkline import ToolError
from trunkline.api.sandbox import SandboxProcess
from trunkline_sandbox.docker.container_spec import ContainerInspection
from trunkline_sandbox.docker.engine import DockerEngine, EngineError
from trunkline_sandbox.docker.streams import AttachedStreams
from trunkline_sandbox.limit_watcher import LimitWatcher, WatchedLimits

KILL_SECONDS = 5.0
"""Seconds that the engine may take to end a program and report its exit code. After that it counts as hung."""

KILLED = 137
"""128 and the number of SIGKILL, as a shell tells of it."""


class ContainerProcess(SandboxProcess):
    """A program that ``Docker.start`` started. ``away`` removes the container; with ``True`` it first waits until
    Docker answers again."""

    def __init__(
        self,
        engine: DockerEngine,
        container: str,
        wire: AttachedStreams,
        away: Callable[[str, bool], Awaitable[None]],
    ) -> None:
        self.stdin, self.stdout, self.stderr = wire.stdin, wire.stdout, wire.stderr
        self._engine = engine
        self._container = container
        self._wire = wire
        self._away = away
        self._code: int | None = None
        self._over = False
        self._ending = anyio.Lock()
        self._waiting: set[anyio.CancelScope] = set()
        self._watch: LimitWatcher | None = None

    def watch(self, bounds: WatchedLimits) -> None:
        """Have it ended when it takes more than that."""
        self._watch = LimitWatcher(bounds, self._exceeded)

    def _exceeded(self, watch: LimitWatcher, limit: str) -> None:
        """Called from the watch's thread, so that a busy worker holds nothing up."""
        self.killed = self.killed or limit
        anyio.run(self._kill_until_ended, watch)

    async def _kill_until_ended(self, watch: LimitWatcher) -> None:
        """Have the engine end it, for as long as it may still run."""
        engine = DockerEngine(self._engine.host)
        while watch.is_running:
            try:
                await engine.call("POST", f"/containers/{self._container}/kill", seconds=KILL_SECONDS)
                return
            except EngineError as error:
                if not error.is_silent:  # it has ended
                    return
            await anyio.sleep(1.0)

    async def wait(self) -> int | None:
        """See ``SandboxProcess``."""
        if not self._over:
            with anyio.CancelScope() as waiting:
                self._waiting.add(waiting)
                try:
                    await self._engine.call("POST", f"/containers/{self._container}/wait", seconds=None)
                except EngineError as error:
                    if error.status != 404:  # somebody has removed it: panic
                        raise ToolError(f"The Docker engine fails: {error}", kind="unavailable") from error
                finally:
                    self._waiting.discard(waiting)
            with anyio.CancelScope(shield=True):
                await self._finish()
        return None if self.killed else self._code

    async def kill(self, why: str = "killed") -> None:
        """See ``SandboxProcess``. With an engine that hangs it is over all the same: what runs on is removed later."""
        with anyio.CancelScope(shield=True):
            if self._over:
                return
            silent = False
            try:
                if not self._wire.ended.is_set():
                    await self._kill_container(why)
                await self._engine.call("POST", f"/containers/{self._container}/wait", seconds=KILL_SECONDS)
            except EngineError as error:
                silent = error.is_silent
                self.killed = self.killed or (why if silent else "")
            await self._finish(silent)
            for waiting in self._waiting:
                waiting.cancel()

    async def _kill_container(self, why: str) -> None:
        """Raises EngineError when the engine does not answer."""
        try:
            await self._engine.call("POST", f"/containers/{self._container}/kill", seconds=KILL_SECONDS)
            self.killed = self.killed or why
        except EngineError as error:
            if error.is_silent:
                raise

    async def _finish(self, silent: bool = False) -> None:
        """Find out how it ended, take in the rest of what it printed, and have it removed. Of a ``silent`` engine
        nothing is asked."""
        async with self._ending:
            if self._over:
                return
            if self._watch is not None:
                await anyio.to_thread.run_sync(self._watch.stop)
            if not silent:
                await self._read_exit_state()
            await self._wire.finish()
            await self._away(self._container, silent)
            self._over = True

    async def _read_exit_state(self) -> None:
        try:
            found = await self._engine.call(
                "GET", f"/containers/{self._container}/json", seconds=KILL_SECONDS
            )
        except EngineError:
            self.killed = self.killed or "killed"
            return
        state = msgspec.convert(found, ContainerInspection).state
        self._code = state.exit_code
        if state.exit_code == KILLED and state.out_of_memory:
            self.killed = self.killed or "memory"

    async def __aexit__(self, *raised: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.kill()
            await self._wire.aclose()
