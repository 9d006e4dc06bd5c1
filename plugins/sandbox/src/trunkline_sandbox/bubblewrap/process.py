"""A program that bubblewrap runs: bubblewrap itself outside, and inside the first process of a namespace of its own.

When that first process ends, the kernel ends all others of the namespace: nothing survives it, however it tried.
"""

import os
import signal
from contextlib import suppress

import anyio
import anyio.to_thread
from anyio.abc import Process

from trunkline import ToolError
from trunkline.api.sandbox import SandboxProcess
from trunkline_sandbox.bubblewrap.cgroups import ControlGroup
from trunkline_sandbox.bubblewrap.status import StatusPipe
from trunkline_sandbox.bubblewrap.uplink import Uplink
from trunkline_sandbox.limit_watcher import LimitWatcher, WatchedLimits

GONE_SECONDS = 5.0


class BubblewrapProcess(SandboxProcess):
    """A program that ``Bubblewrap.start`` started. ``first`` is the pid of the namespace's first process."""

    def __init__(self, raw: Process, first: int, status: StatusPipe, group: ControlGroup | None) -> None:
        assert raw.stdin is not None and raw.stdout is not None and raw.stderr is not None
        self.stdin, self.stdout, self.stderr = raw.stdin, raw.stdout, raw.stderr
        self._raw = raw
        self.first = first
        self._first = os.pidfd_open(first)
        self._status = status
        self._group = group
        self._code: int | None = None
        self._over = False
        self.uplink: Uplink | None = None
        """The uplink of its network, if it has one of its own."""
        self._ending = anyio.Lock()
        self._watch: LimitWatcher | None = None

    def watch(self, bounds: WatchedLimits) -> None:
        """Have it ended when it takes more than that."""
        self._watch = LimitWatcher(bounds, self._exceeded)

    def _exceeded(self, _: LimitWatcher, limit: str) -> None:
        """Called from another thread. The handle is closed only after that has ended."""
        self.killed = self.killed or limit
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._first, signal.SIGKILL)

    async def wait(self) -> int | None:
        """See ``SandboxProcess``."""
        await self._raw.wait()
        with anyio.CancelScope(shield=True):
            await self._finish()
        if self._code is None and not self.killed:
            raise ToolError("The sandbox could not be created for this program.", kind="unavailable")
        return None if self.killed else self._code

    async def kill(self, why: str = "killed") -> None:
        """See ``SandboxProcess``."""
        if self._over:
            return
        if self._raw.returncode is None:
            self.killed = self.killed or why
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            with suppress(ProcessLookupError):
                self._raw.kill()
        with anyio.CancelScope(shield=True):
            await self._raw.wait()
            await self._finish()

    async def discard(self) -> None:
        """Keep nothing of a program that was ended before it began: no handle, no network and no group."""
        with anyio.CancelScope(shield=True):
            await self._stop_watch()
            os.close(self._first)
            if self.uplink is not None:
                await self.uplink.aclose()
            if self._group is not None:
                await anyio.to_thread.run_sync(self._group.remove)

    async def _finish(self) -> None:
        """Once, after the end: make sure that nothing is left, and learn how it ended."""
        async with self._ending:
            if self._over:
                return
            await self._stop_watch()
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            with anyio.move_on_after(GONE_SECONDS):
                await anyio.wait_readable(self._first)
            self._code = self._status.exit_code()
            self._set_kill_reason()
            os.close(self._first)
            self._status.close()
            if self.uplink is not None:
                await self.uplink.aclose()
            if self._group is not None:
                await anyio.to_thread.run_sync(self._group.remove)
            self._over = True

    async def _stop_watch(self) -> None:
        if self._watch is not None:
            await anyio.to_thread.run_sync(self._watch.stop)

    def _set_kill_reason(self) -> None:
        """Set ``killed`` when the program did not end by itself."""
        if self._group is not None and self._code != 0 and self._group.out_of_memory():
            self.killed = self.killed or "memory"
        elif (self._raw.returncode or 0) < 0:
            self.killed = self.killed or "killed"
