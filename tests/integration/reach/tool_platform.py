"""A platform with a tool of every kind, all of which do the same: they leave a mark in a file outside, or look.

Native is a tool of the platform's own kind, in the process of the worker; a plugin is an installed distribution, and an
isolated one the same in a process of its own; an MCP server is reached over HTTP; a remote is another host's tools
worker, enrolled and connected by TLS.
"""

import socket
import sys
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from anyio.abc import Process
from mcp.server import MCPServer
from mcp_types import ToolAnnotations

from tests.ports import free_port
from trunkline.config.editor import write_settings
from trunkline.contracts.audit.messages import AuditEntry
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.tools.messages import CallTool, ListTools, ToolOutcome
from trunkline.contracts.tools.subjects import CALL_TOOL, LIST_TOOLS
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.runtime.remotes.enrolment import join
from trunkline.runtime.remotes.handshake import new_code
from trunkline.runtime.remotes.invitation import Invitation, invite
from trunkline.runtime.remotes.registry import RemoteRegistry
from trunkline.testing.platform import Platform, clean_environ, platform
from trunkline_bus import BusError, new_id

HERE = "127.0.0.1"

SOURCE = '''
"""Tools that leave a mark outside, and look."""
import os
import trunkline

def left(mark):
    handle = os.open({file!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{{mark}}\\n".encode())
    os.close(handle)
    return f"left {{mark}}"

@trunkline.tool(effect="write", name="{prefix}touch")
def touch(mark: str) -> str:
    """Leave a mark."""
    return left(mark)

@trunkline.tool(effect="read", name="{prefix}look")
def look(mark: str) -> str:
    """Look, and leave a mark, so that it can be seen from outside that somebody looked."""
    return left(mark)

@trunkline.tool(effect="write", name="{prefix}want")
async def want(context: trunkline.ToolContext, what: str) -> str:
    """Begin, then want something of the platform."""
    left(f"{prefix}want {{what}}")
    match what:
        case "ask":
            return await context.person.ask("Which one?")
        case "tell":
            await context.person.tell("telegram", "news")
        case "plan":
            await context.planning.begin()
        case "plans":
            return str(await context.planning.holds())
        case "read":
            return (await context.documents.read("a.md")).text
        case "load":
            context.load(["{prefix}look"])
        case "memory":
            return str(await context.memory.read("a.md"))
        case "model":
            return (await context.model.complete("hello")).text
        case "search":
            return str(await context.documents.search("beans"))
    return "done"

@trunkline.hookimpl
def trunkline_tools():
    return [touch, look, want]
'''

KINDS = {
    "native": ("touch", "look"),
    "plugin": ("near_touch", "near_look"),
    "isolated": ("apart_touch", "apart_look"),
    "mcp": ("web_touch", "web_look"),
    "remote": ("laptop__touch", "laptop__look"),
}
"""Each kind of tool: one that writes, and one that only reads."""


class Reached:
    """The running platform; ``file`` is where marks are left."""

    def __init__(self, running: Platform, file: Path) -> None:
        self.running = running
        self._file = file

    def marks(self) -> list[str]:
        """Return the effects, of any tool."""
        return self._file.read_text().splitlines() if self._file.exists() else []

    async def call(self, name: str, block: str, arguments: Any, key: str = "", **more: Any) -> ToolOutcome:
        """Call a tool for a block."""
        request = CallTool(
            call=key or new_id("call"), name=name, arguments=arguments, block=block, conversation="conv_1",
            turn="turn_1", actor="owner", **more,
        )  # fmt: skip
        with anyio.fail_after(60):
            async with self.running.bus.call_streaming(CALL_TOOL, request, idle_timeout=20) as replies:
                async for reply in replies:
                    if isinstance(reply, ToolOutcome):
                        return reply
        raise AssertionError("no outcome")

    async def audited(self, keys: Collection[str], count: int) -> list[AuditEntry]:
        """The lines of the audit log about these calls, once there are so many."""
        with anyio.fail_after(60):
            while True:
                noted = [stored.data async for stored in self.running.bus.history(AUDIT)]
                found = [one for one in noted if one.call in keys]
                if len(found) >= count:
                    return found
                await anyio.sleep(0.1)

    async def offered(self, names: Sequence[str], block: str) -> None:
        """Wait until the block's catalogue has these tools."""
        with anyio.fail_after(60):
            while True:
                try:
                    reported = await self.running.bus.call(LIST_TOOLS, ListTools(block=block))
                    if {*names} <= {spec.name for spec in reported.tools or ()}:
                        return
                except BusError:
                    pass
                await anyio.sleep(0.1)


@asynccontextmanager
async def started_platform(
    folder: Path, site: pytest.MonkeyPatch, blocks: Sequence[str]
) -> AsyncIterator[Reached]:
    """Start every process; a person decides about writes, unless a block's settings differ."""
    file = folder / "marks"
    _install(folder / "site", "acme-near", SOURCE.format(file=str(file), prefix="near_"))
    _install(folder / "site", "acme-apart", SOURCE.format(file=str(file), prefix="apart_"))
    site.syspath_prepend(str(folder / "site"))
    site.delitem(sys.modules, "acme_near", raising=False)  # the module of another platform, with another file
    native: dict[str, Any] = {}
    exec(SOURCE.format(file=str(file), prefix=""), native)
    plugin = type("Native", (), {"trunkline_tools": staticmethod(native["trunkline_tools"])})()
    home, door = folder / "home", free_port()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(_mcp_server(file))
        home.mkdir()
        (home / "mcp.json").write_text(f'{{"mcpServers": {{"web": {{"url": "{url}", "trust": "trusted"}}}}}}')
        away = await _enrolled(home, folder / "away", door, blocks, file)
        settings = {
            "permissions.approvals": "some", "remotes.listen": f"{HERE}:{door}",
            "plugins.acme-apart.isolation": "process", "runtime.provider_adapter": "offline",
        }  # fmt: skip
        write_settings(home / "trunkline.toml", settings)
        workers: tuple[WorkerKind, ...] = ("memory", "tools", "gateway")
        running = await stack.enter_async_context(
            platform(home, plugins=[plugin], config=settings, environ=clean_environ(), workers=workers)
        )
        await stack.enter_async_context(_serving(away))
        found = Reached(running, file)
        for block in blocks:
            if block != "main":  # which is there
                await running.gateway.create_block(block)
        for block in blocks:
            await found.offered([name for names in KINDS.values() for name in names], block)
        yield found


def _install(site: Path, dist: str, source: str) -> None:
    """A distribution with a ``dist-info``, as an installer leaves it."""
    info = site / f"{dist}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{dist.replace('-', '_')}.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[trunkline]\n{dist} = {dist.replace('-', '_')}\n")


@asynccontextmanager
async def _mcp_server(file: Path) -> AsyncIterator[str]:
    """A server of the official SDK, in this process."""
    server = MCPServer("web")

    def left(mark: str) -> str:
        with file.open("a") as out:
            out.write(f"{mark}\n")
        return f"left {mark}"

    server.add_tool(left, name="web_touch", description="Leave a mark.")
    looking = ToolAnnotations(read_only_hint=True)
    server.add_tool(left, name="web_look", description="Look.", annotations=looking)
    with socket.socket() as listener:
        listener.bind((HERE, 0))
        app = server.streamable_http_app()
        config = uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
        running = uvicorn.Server(config)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.serve, [listener])
            yield f"http://{HERE}:{listener.getsockname()[1]}/mcp"
            running.should_exit = True


async def _enrolled(home: Path, away: Path, door: int, blocks: Sequence[str], file: Path) -> Path:
    """Another home, let in at this one for these blocks."""
    tools = away / "tools"
    tools.mkdir(parents=True)
    (tools / "touching.py").write_text(SOURCE.format(file=str(file), prefix=""))
    write_settings(away / "trunkline.toml", {"runtime.tool_sources": [str(tools)]})
    code, ready = new_code(), anyio.Event()
    ports: list[int] = []

    def listening(port: int) -> None:
        ports.append(port)
        ready.set()

    async def wait() -> None:
        invitation = Invitation("laptop", tuple(blocks), code, HERE, 0, door)
        await invite(RemoteRegistry(home / "remotes"), invitation, seconds=30, ready=listening)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await ready.wait()
        await join(away / "hub", HERE, ports[0], code)
    return away


@asynccontextmanager
async def _serving(away: Path) -> AsyncIterator[Process]:
    """The other host's worker, a process of its own."""
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(away)}
    command = [sys.executable, "-m", "trunkline.cli.main", "remote", "serve", "--log", "json"]
    with (away / "log").open("wb") as log:
        async with await anyio.open_process(command, env=environ, stdout=log, stderr=log) as process:
            try:
                yield process
            finally:
                process.terminate()
