"""The embedded NATS server: a child process with generated credentials that ends when this process ends.

On Linux the child is bound by PR_SET_PDEATHSIG to the thread that starts it, so start the server from a thread that
lives as long as the server should (the event loop's thread). On other systems a small shell watches a pipe from this
process. The child also holds the lock on its store, so that no second server uses the store while the child runs.
"""

import fcntl
import logging
import re
import secrets
import signal
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import IO

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from trunkline_bus.backoff import Backoff
from trunkline_bus.errors import ServerStartError
from trunkline_bus.server import child_process
from trunkline_bus.server.address import ServerAddress, load_address, save_address
from trunkline_bus.server.child_process import find_binary, send_signal, wait_exited
from trunkline_bus.server.leaf_nodes import LeafUser
from trunkline_bus.server.server_config import (
    ServerFiles,
    ServerSettings,
    config_text,
    default_max_store,
    free_bytes,
)

_log = logging.getLogger(__name__)

_CRITICAL = re.compile(r"critical write error|no space left on device", re.IGNORECASE)
_STORAGE_INTERVAL = 1.0
_ROOM_TO_RESUME = 8 * 1024 * 1024


class EmbeddedServer:
    """A nats-server that runs while the ``async with`` block runs. If the server ends, it is restarted on the same
    port.

    Acknowledged messages are on disk, unless ``sync`` says otherwise. ``storage_failed`` is True while the disk is
    full. When the disk has free space again, the server is restarted, because it does not recover by itself.
    ``restarts`` counts the restarts. Raises ``ServerStartError``.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.user = "trunkline"
        self.password = settings.password or secrets.token_urlsafe(24)
        self.port = settings.port
        self.restarts = 0
        self.storage_failed = False
        self._store = settings.store_dir.expanduser().absolute()
        self._files = ServerFiles(self._store)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[bytes] | None = None
        self._group: TaskGroup | None = None
        self._binary = ""
        self._limit = 0
        self._accepted: set[object] = set()
        self._restarted = anyio.Event()

    @property
    def url(self) -> str:
        """The address for clients, without credentials."""
        return f"nats://{self.settings.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the server; 0 while the server does not run."""
        return self._files.read_pid()

    async def __aenter__(self) -> "EmbeddedServer":
        self._binary = find_binary(self.settings.binary)
        try:
            self._store.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = await self._locked()
            if self.settings.port == -1:
                last = load_address(self._store, self.settings.host)
                self.port, self.password = last.port, self.settings.password or last.password
            await self._start()
            save_address(self._store, ServerAddress(self.port, self.password))
        except OSError as error:
            await self._stop()
            raise ServerStartError(
                f"cannot use {self._store} for the embedded NATS server: {error.strerror or error}; "
                "free space there, make it writable, or set another Trunkline home"
            ) from error
        except BaseException:
            await self._stop()
            raise
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self._supervise)
        self._group.start_soon(self._watch_storage)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._group is not None:
            self._group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await self._stop()
            await self._group.__aexit__(None, None, None)

    def reload(self) -> None:
        """Accept the leaf nodes that ``leaf_listener`` returns now, and no others, with its present certificate.

        If leaf nodes were only added, the server reads its configuration again. A reload does not close the connections
        of removed leaf nodes and does not change the certificate (nats-server 2.15). In these cases the server is
        restarted, and all clients have to reconnect.
        """
        before = self._accepted
        self._write_config()
        send_signal(self.pid, signal.SIGHUP if before <= self._accepted else signal.SIGTERM)

    # Starting

    async def _locked(self) -> IO[bytes]:
        """Lock the store, and wait up to ``lock_timeout`` for a previous server that is ending."""
        lock = self._files.lock.open("ab")
        with anyio.move_on_after(self.settings.lock_timeout):
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return lock
                except BlockingIOError:
                    await anyio.sleep(0.02)
        lock.close()
        raise ServerStartError(
            f"another Trunkline already runs its NATS server on {self._store}; "
            "connect to it with bus.url, stop it, or set another Trunkline home"
        )

    async def _start(self) -> None:
        self._files.clear_ports()
        self._write_config()
        self._files.pid.unlink(missing_ok=True)
        if self._files.log.exists():
            self._files.log.replace(self._files.previous_log)
        argv = [self._binary, "-c", str(self._files.config)]
        self._process = child_process.spawn(argv, self._lock)
        with anyio.move_on_after(self.settings.start_timeout):
            while True:
                if self._process.poll() is not None:
                    raise ServerStartError(self._death_reason())
                if (port := self._files.read_port()) is not None:
                    self.port = port
                    return
                await anyio.sleep(0.002)
        raise ServerStartError(
            f"the embedded NATS server was not ready in {self.settings.start_timeout:g} s; see {self._files.log}"
        )

    def _write_config(self) -> None:
        listener = self.settings.leaf_listener
        self._limit = self._limit or self.settings.max_store or default_max_store(self._store)
        leaf_users: Sequence[LeafUser] = () if listener is None else listener.users()
        # The certificate's time is among what is accepted: a new certificate needs a restart, too.
        certificate = () if listener is None else (listener.certificate.stat().st_mtime_ns,)
        self._accepted = {*leaf_users, *certificate}
        config = config_text(
            self.settings,
            self._files,
            user=self.user,
            password=self.password,
            port=self.port,
            max_store=self._limit,
            leaf_users=leaf_users,
        )
        self._files.config.touch(mode=0o600)
        self._files.config.write_text(config)

    def _death_reason(self) -> str:
        """Return a sentence that says why the server ended, from the end of its log."""
        log = self._files.log_end()
        fatal = [line.split("] ", 1)[-1] for line in log.splitlines() if "[FTL]" in line or "[ERR]" in line]
        said = fatal[-1].strip() if fatal else (log.strip().splitlines() or ["it said nothing"])[-1]
        lowered = log.lower()
        if "address already in use" in lowered:
            cure = f"port {self.settings.port} is in use; set another port or -1 for any free one"
        elif "no space left" in lowered or "insufficient" in lowered:
            cure = f"the disk of {self._store} is full; free space and start again"
        elif "permission denied" in lowered or "read-only" in lowered:
            cure = f"{self._store} cannot be written; make it writable or set another Trunkline home"
        else:
            cure = f"see {self._files.log}"
        return f"the embedded NATS server did not start: {said}; {cure}"

    # Supervising and stopping

    async def _supervise(self) -> None:
        backoff = Backoff(0.1, 5.0)
        while True:
            if self._process is not None:
                await wait_exited(self._process)
                # Leaving the context ends the server, too, maybe before this task first runs. A server that is started
                # then would outlive the context.
                await anyio.lowlevel.checkpoint_if_cancelled()
                _log.error("the embedded NATS server ended (%s); starting it again", self._process.returncode)
            try:
                await self._start()
            except (ServerStartError, OSError) as error:
                _log.error("%s", error)
                self._kill()
                self._process = None
                await backoff.sleep()
            else:
                self.restarts += 1
                self._restarted.set()
                backoff.reset()

    async def _watch_storage(self) -> None:
        """Restart the server after its disk was full, once the disk has free space. The server does not recover by
        itself.
        """
        while True:
            await anyio.sleep(_STORAGE_INTERVAL)
            if not _CRITICAL.search(self._files.log_end()):
                continue
            if not self.storage_failed:
                self.storage_failed = True
                _log.error("the disk of %s is full: nothing is stored until space is free again", self._store)
            if self._process is not None and free_bytes(self._store) > _ROOM_TO_RESUME:
                _log.warning("%s has free space again; restarting the embedded NATS server", self._store)
                self._restarted = anyio.Event()
                send_signal(self.pid, signal.SIGTERM)
                await self._restarted.wait()
                self.storage_failed = False

    async def _stop(self) -> None:
        """Terminate the child, kill it if it does not end in time, and release the store."""
        process = self._process
        if process is not None and process.poll() is None:
            send_signal(self.pid or process.pid, signal.SIGTERM)
            with anyio.move_on_after(5, shield=True):
                await wait_exited(process)
            self._kill()
        self._release()

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            send_signal(self.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
