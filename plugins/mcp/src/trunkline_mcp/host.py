"""The host: keeps a line to every server that the files name, and publishes their tools. The files may change."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec
from anyio.abc import TaskGroup

import trunkline
from trunkline.api.tool import SourceContext, ToolSource
from trunkline_mcp.connector import Connector
from trunkline_mcp.server_config import ServerConfig, ServerConfigs, config_files, load_servers
from trunkline_mcp.server_connection import ServerConnection, ServerStatus

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""Seconds between two looks at the files."""

WAIT_SECONDS = 0.1
"""Seconds between two looks at the status file."""

STATUS_FILE = Path("cache", "mcp.json")
"""The file in the home that holds the status of the servers, for commands and for ``doctor``."""

Fingerprint = tuple[tuple[str, int, int], ...]


class HostStatus(msgspec.Struct, frozen=True):
    """The status of all servers. ``pid`` is the process that holds the connections, and ``files`` says which files it
    has read."""

    pid: int
    servers: dict[str, ServerStatus]
    files: Fingerprint = ()


class McpHost(ToolSource):
    """The tools of all MCP servers of a home."""

    name = "mcp"

    def __init__(self, home: Path, workspaces: Path) -> None:
        self._home = home
        self._workspaces = workspaces
        self._lines: dict[str, tuple[ServerConnection, anyio.CancelScope]] = {}
        self._moved = anyio.Event()
        self._settled = anyio.Event()
        self._seen: Fingerprint = ()

    async def settle(self) -> None:
        """Wait until every server of the files is connected, or its first attempt has failed. Raises nothing."""
        await self._settled.wait()

    async def run(self, context: SourceContext) -> None:
        """Connect to what the files name, now and when they change, until cancelled."""
        dialler = Connector(self._home, self._workspaces, context.sandbox)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._publish, context)
            while True:
                mark = fingerprint(self._home)
                if mark != self._seen:
                    self._seen = mark
                    self._reconcile(load_servers(self._home), dialler, tasks)
                await anyio.sleep(POLL_SECONDS)

    def _reconcile(self, configs: ServerConfigs, dialler: Connector, tasks: TaskGroup) -> None:
        for problem in configs.problems:
            log.warning("%s: %s", problem.where, problem.what)
        wanted = {server.identity: server for server in configs.enabled}
        for identity, (line, scope) in list(self._lines.items()):
            if wanted.get(identity) != line.server:
                scope.cancel()
                del self._lines[identity]
        for identity, server in wanted.items():
            if identity not in self._lines:
                self._lines[identity] = self._start_connection(server, dialler, tasks)
        self._moved.set()

    def _start_connection(
        self, server: ServerConfig, dialler: Connector, tasks: TaskGroup
    ) -> tuple[ServerConnection, anyio.CancelScope]:
        line, scope = ServerConnection(server, dialler, self._on_change), anyio.CancelScope()

        async def keep() -> None:
            with scope:
                await line.run()

        tasks.start_soon(keep)
        return line, scope

    def _on_change(self) -> None:
        self._moved.set()

    async def _publish(self, context: SourceContext) -> None:
        shown: Sequence[trunkline.Tool] = ()
        while True:
            await self._moved.wait()
            self._moved = anyio.Event()
            lines = [line for line, _ in self._lines.values()]
            tools = [tool for line in lines for tool in line.tools]
            if tools != shown:
                shown = tools
                context.publish(tools)
            if all(line.status.state != "connecting" for line in lines):
                self._settled.set()
            statuses = {line.server.identity: line.status for line in lines}
            await anyio.to_thread.run_sync(self._write_status, statuses, self._seen)

    def _write_status(self, statuses: dict[str, ServerStatus], files: Fingerprint) -> None:
        file = self._home / STATUS_FILE
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = file.with_name(f".mcp-{os.getpid()}.json")
            draft.write_bytes(msgspec.json.encode(HostStatus(os.getpid(), statuses, files)))
            draft.replace(file)
        except OSError as error:
            log.warning("the status of the MCP servers cannot be written: %s", error)


def read_statuses(home: Path) -> dict[str, ServerStatus] | None:
    """Return the statuses that the tools worker last wrote; None when no worker runs."""
    status = _read_status(home)
    return None if status is None else status.servers


async def wait_for_status(home: Path, server: ServerConfig, seconds: float) -> ServerStatus | None:
    """Return the status of a server by the files of now, once it is connected or has failed; after these seconds
    whatever it is. None if no tools worker reports one."""
    found: ServerStatus | None = None
    with anyio.move_on_after(seconds):
        while found is None or found.state == "connecting":
            await anyio.sleep(WAIT_SECONDS)
            status = _read_status(home)
            found = (
                status.servers.get(server.identity) if status and status.files == fingerprint(home) else None
            )
    return found


def _read_status(home: Path) -> HostStatus | None:
    try:
        status = msgspec.json.decode((home / STATUS_FILE).read_bytes(), type=HostStatus)
        os.kill(status.pid, 0)
    except (OSError, msgspec.MsgspecError):
        return None
    return status


def fingerprint(home: Path) -> Fingerprint:
    """The files as they are now."""
    return tuple(_file_fingerprint(path) for _, path in config_files(home))


def _file_fingerprint(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), status.st_mtime_ns, status.st_size
