"""The settings of the embedded server, the files of its store, and its configuration text."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from trunkline_bus.server.leaf_nodes import (
    LeafListener,
    LeafRemote,
    LeafUser,
    listener_config,
    remote_config,
    user_entries,
)


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
    one on the PATH. ``leaf_listener`` accepts connections of leaf nodes; ``hub`` is the hub to which this server
    connects as a leaf node.
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
    hub: LeafRemote | None = None
    users: tuple[ServerUser, ...] = ()


class ServerFiles:
    """The files in the store of a server, besides those of JetStream."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.config = store / "server.conf"
        self.log = store / "server.log"
        self.previous_log = store / "server.log.1"
        self.pid = store / "server.pid"
        self.lock = store / "lock"
        self.ports = store / "ports"
        """The folder in which the server writes its ports when it is ready."""

    def clear_ports(self) -> None:
        """Empty the folder of the ports, so that the next file is that of the next start."""
        shutil.rmtree(self.ports, ignore_errors=True)
        self.ports.mkdir()

    def read_port(self) -> int | None:
        """Return the client port; None while the server is not ready."""
        for path in self.ports.glob("*.ports"):
            try:
                urls = json.loads(path.read_text())["nats"]
            except (ValueError, KeyError, OSError):
                return None  # partly written
            return int(urls[0].rsplit(":", 1)[1])
        return None

    def read_pid(self) -> int:
        """Return the process id of the server; 0 while the server does not run."""
        try:
            return int(self.pid.read_text())
        except (OSError, ValueError):
            return 0

    def log_end(self) -> str:
        """Return the end of the server's log."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - 20_000))
                return log.read().decode(errors="replace")
        except OSError:
            return ""


def config_text(
    settings: ServerSettings,
    files: ServerFiles,
    *,
    user: str,
    password: str,
    port: int,
    max_store: int,
    leaf_users: Sequence[LeafUser],
) -> str:
    """Return the server's configuration. ``user`` has all permissions. ``max_store`` limits the size of JetStream's
    files. ``leaf_users`` are the leaf nodes that may connect.
    """
    listener, hub = settings.leaf_listener, settings.hub
    users = [f"{{ user: {user}, password: {json.dumps(password)} }}"]
    users += [*map(_limited, settings.users), *user_entries(leaf_users)]
    domain = "" if hub is None else f"  domain: {hub.domain}\n"
    return f"""\
server_name: {json.dumps(hub.domain if hub else settings.name)}
listen: {json.dumps(f"{settings.host}:{port}")}
max_payload: {settings.max_payload}
max_pending: {max(64 * 1024 * 1024, 8 * settings.max_payload)}
write_deadline: "10s"
pid_file: {json.dumps(str(files.pid))}
ports_file_dir: {json.dumps(str(files.ports))}
log_file: {json.dumps(str(files.log))}
logfile_size_limit: 1048576
authorization {{ users: [ {", ".join(users)} ] }}
jetstream {{
  store_dir: {json.dumps(str(files.store))}
  sync_interval: {_interval(settings.sync)}
  max_file_store: {max_store}
{domain}}}
{listener_config(listener) if listener else ""}{remote_config(hub) if hub else ""}{settings.extra}"""


def default_max_store(store: Path) -> int:
    """Return the number of bytes that JetStream may use: what it uses now and nine tenths of the free space.

    The server's own default is three quarters of the space that is free at the start and ignores the space that it uses
    now. After a restart on a well-filled disk the server would refuse to store anything.
    """
    used = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    return used + free_bytes(store) * 9 // 10


def free_bytes(store: Path) -> int:
    """Return the free space of the store's disk, in bytes."""
    return shutil.disk_usage(store).free


def _interval(sync: str | float) -> str:
    """Return ``sync`` as the server's configuration has it: in whole milliseconds."""
    return sync if isinstance(sync, str) else f'"{max(1, round(sync * 1000))}ms"'


def _limited(user: ServerUser) -> str:
    """Return a user with its permissions, as the server's configuration has it."""
    permissions = {
        "publish": {"allow": user.publish} if user.publish else {"deny": [">"]},
        "subscribe": {"allow": user.subscribe} if user.subscribe else {"deny": [">"]},
        "allow_responses": {"max": -1, "expires": user.answer_within},
    }
    return json.dumps({"user": user.user, "password": user.password, "permissions": permissions})
