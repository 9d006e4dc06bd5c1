"""The line to one server: connects, connects again with longer and longer pauses, and tells what tools are there."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import anyio

import trunkline
from trunkline.api.bus import Backoff
from trunkline_mcp.active_calls import ActiveCalls
from trunkline_mcp.connector import Connector, McpSession
from trunkline_mcp.oauth import SignInRequiredError
from trunkline_mcp.server_config import ServerConfig
from trunkline_mcp.tool_listing import list_tools_page
from trunkline_mcp.tools import ConnectionBrokenError, NotSentError, build_tools

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult
    from mcp_types import Tool as Offered

log = logging.getLogger(__name__)

MIN_BACKOFF, MAX_BACKOFF = 1.0, 60.0
"""Seconds between two attempts to connect; the pause doubles from the shortest to the longest."""

STABLE_SECONDS = 30.0
"""Seconds of a connection after which the next pause is the shortest again."""

CALL_WAIT_SECONDS = 5.0
"""Seconds that a call waits for a connection that is being made."""

MOST_TOOLS, MOST_PAGES = 1000, 200
"""The largest number of tools, and of pages of tools, that are read from one server."""

DEBOUNCE_SECONDS = 0.2
"""Seconds after a change before the tools are asked for: changes come in swarms."""

ConnectionState = Literal["connecting", "ready", "failed", "sign-in"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The status of a server. ``why`` is the reason for a failure. The other fields are its own name, the protocol, its
    tools and the tools that were left out."""

    state: ConnectionState = "connecting"
    why: str = ""
    title: str = ""
    protocol: str = ""
    tools: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class ServerConnection:
    """The connection to a server. ``tools`` are the last ones that it listed; they stay while it reconnects."""

    def __init__(self, server: ServerConfig, dialler: Connector, changed: Callable[[], None]) -> None:
        self.server = server
        self.tools: tuple[trunkline.Tool, ...] = ()
        self.status = ServerStatus()
        self._dialler = dialler
        self._changed = changed
        self._dialled: McpSession | None = None
        self._up = anyio.Event()
        self._waiting = ActiveCalls()

    async def run(self) -> None:
        """Keep the line up until cancelled."""
        backoff, mode = Backoff(MIN_BACKOFF, MAX_BACKOFF), None
        while True:
            began = anyio.current_time()
            why = await self._connect_once(mode)
            log.warning("the connection to the MCP server %s is down: %s", self.server.identity, why)
            if anyio.current_time() - began > STABLE_SECONDS:
                backoff.reset()
            mode = "legacy" if why == TIMED_OUT and mode is None and not self.server.protocol else None
            await backoff.sleep()

    async def _connect_once(self, mode: str | None) -> str:
        """Connect and stay connected; why that ended."""
        said: list[str] = []
        try:
            with anyio.move_on_after(self.server.start_timeout) as start:
                async with self._dialler.connect(self.server, mode, said, self._waiting.ask) as dialled:
                    offered, problems = await list_all_tools(dialled.client)
                    start.deadline = float("inf")
                    self._mark_ready(dialled, offered, problems)
                    await self._stay_connected(dialled)
            why = TIMED_OUT if start.cancelled_caught else CONNECTION_ENDED
            return self._mark_down("failed", _with_stderr(why, said))
        except Exception as error:
            found = root_cause(error)
            state: ConnectionState = "sign-in" if isinstance(found, SignInRequiredError) else "failed"
            return self._mark_down(state, _with_stderr(error_text(found), said))

    async def _stay_connected(self, dialled: McpSession) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen_for_changes, dialled)
            tasks.start_soon(self._refresh_on_change, dialled)
            await dialled.lost.wait()
            tasks.cancel_scope.cancel()

    async def _refresh_on_change(self, dialled: McpSession) -> None:
        while True:
            await dialled.changed()
            await anyio.sleep(DEBOUNCE_SECONDS)
            await self._refresh_tools(dialled)

    async def _refresh_tools(self, dialled: McpSession) -> None:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        try:
            self._mark_ready(dialled, *await list_all_tools(dialled.client))
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                return self._mark_lost(dialled)
            log.warning("the MCP server %s does not list its new tools: %s", self.server.identity, error)

    async def _listen_for_changes(self, dialled: McpSession) -> None:
        """Since 2026-07-28 a client that wants to hear of changes keeps asking for them."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        said = dialled.client.server_capabilities.tools
        backoff = Backoff(MIN_BACKOFF, MAX_BACKOFF)
        while said is not None and said.list_changed:
            try:
                async with dialled.client.listen(tools_list_changed=True) as events:
                    backoff.reset()
                    async for _ in events:
                        await self._refresh_tools(dialled)
            except ListenNotSupportedError:
                return  # an older server tells by itself
            except (SubscriptionLost, MCPError, TimeoutError) as error:
                log.debug("the MCP server %s stopped reporting changes: %s", self.server.identity, error)
            await backoff.sleep()
            await self._refresh_tools(dialled)

    def _mark_ready(self, dialled: McpSession, offered: "list[Offered]", problems: list[str]) -> None:
        tools, left_out = build_tools(self, offered)
        for problem in (left_out := [*problems, *left_out]):
            log.warning("the MCP server %s: %s", self.server.identity, problem)
        about = dialled.client.server_info
        self.tools = tuple(tools)
        self.status = ServerStatus(
            state="ready",
            title=f"{about.name} {about.version}"[:100] if about else "",
            protocol=dialled.client.protocol_version,
            tools=tuple(tool.spec.name for tool in tools),
            left_out=tuple(left_out[:50]),
        )
        self._dialled = dialled
        self._up.set()
        self._changed()

    def _mark_down(self, state: ConnectionState, why: str) -> str:
        self._dialled = None
        self._up = anyio.Event()
        self.status = replace(self.status, state=state, why=why)
        self._changed()
        return why

    def _mark_lost(self, dialled: McpSession) -> None:
        """The connection is known to be gone: no further call is to use it."""
        dialled.lost.set()
        if self._dialled is dialled:
            self._mark_down("failed", CONNECTION_ENDED)

    async def call(
        self, name: str, arguments: dict[str, Any], context: trunkline.ToolContext
    ) -> "CallToolResult":
        """Have a tool run at the server. Cancelling tells the server.

        Raises:
            NotSentError: there is no connection, and none came about in ``CALL_WAIT_SECONDS`` seconds.
            ConnectionBrokenError: the connection broke meanwhile, or the answer is none.
        """
        from mcp import MCPError

        dialled = await self._wait_for_session()
        try:
            with self._waiting.track(context):
                return await dialled.client.call_tool(name, arguments, progress_callback=_progress(context))
        except MCPError as error:
            return self._error_result(dialled, error)
        except Exception as error:
            found = root_cause(error)
            if dialled.lost.is_set() or _is_network(found):
                self._mark_lost(dialled)
            raise ConnectionBrokenError(error_text(found)) from error

    async def _wait_for_session(self) -> McpSession:
        with anyio.move_on_after(CALL_WAIT_SECONDS):
            await self._up.wait()
        if self._dialled is None:
            why = self.status.why or "it does not answer yet"
            raise NotSentError(f"the MCP server {self.server.identity} is not connected: {why}")
        return self._dialled

    def _error_result(self, dialled: McpSession, error: Any) -> "CallToolResult":
        from mcp_types import CONNECTION_CLOSED, CallToolResult, TextContent

        if error.code == CONNECTION_CLOSED or dialled.lost.is_set():
            self._mark_lost(dialled)
            raise ConnectionBrokenError(
                f"the connection to the MCP server {self.server.identity} broke"
            ) from error
        return CallToolResult(content=[TextContent(type="text", text=error.message)], is_error=True)


TIMED_OUT = "it did not answer in time"
CONNECTION_ENDED = "it ended the connection"


async def list_all_tools(client: "Client") -> "tuple[list[Offered], list[str]]":
    """The tools of all pages, and what is wrong with them. A server without tools has none."""
    if client.server_capabilities.tools is None and client.protocol_version < "2026":
        return [], []
    found: list[Offered] = []
    seen: set[str] = set()
    cursor: str | None = None
    problems: list[str] = []
    for _ in range(MOST_PAGES):
        page, unreadable = await list_tools_page(client, cursor, MOST_TOOLS - len(found))
        problems += unreadable
        found += page.tools
        cursor = page.next_cursor
        if cursor is None or cursor in seen or len(found) >= MOST_TOOLS:
            break
        seen.add(cursor)
    if cursor is not None:
        problems.append(f"it has more pages of tools than are read; {min(len(found), MOST_TOOLS)} are used")
    return found[:MOST_TOOLS], problems


def _progress(context: trunkline.ToolContext) -> Any:
    async def report(progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        context.report(f"{message} ({share})" if message else share)

    return report


def root_cause(error: BaseException) -> BaseException:
    """Return the underlying error of nested exception groups."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def error_text(error: BaseException) -> str:
    """A failure in a line."""
    if isinstance(error, TimeoutError):
        return TIMED_OUT
    text = " ".join(str(error).split())[:300]
    return (
        text
        if isinstance(error, trunkline.ToolError | trunkline.ConfigError) and text
        else (f"{type(error).__name__}: {text}" if text else type(error).__name__)
    )


def _is_network(error: BaseException) -> bool:
    with suppress(ImportError):
        import httpx2

        return isinstance(
            error, httpx2.TransportError | anyio.ClosedResourceError | anyio.BrokenResourceError
        )
    return False


def _with_stderr(why: str, stderr: list[str]) -> str:
    return f"{why}; it said: {stderr[-1]}"[:400] if stderr else why
