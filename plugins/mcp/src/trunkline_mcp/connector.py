"""Connect to an MCP server: a program in the sandbox, or a URL. A connection lasts as long as its context."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

import trunkline
from trunkline import Sandbox, SandboxLimits
from trunkline_mcp.elicitation import ElicitationHandler, FormAnswerer, decline_all
from trunkline_mcp.oauth import NoSignInPage, OAuthTokenStore, SignInPage, oauth_provider
from trunkline_mcp.server_config import CONFIG_FOLDER, ServerConfig

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import Transport
    from mcp.client.session import IncomingMessage

MEMORY, PROCESSES = 1024, 256
"""MiB and processes of a server: runtimes such as Node's begin with a dozen threads."""

CONNECT_SECONDS, READ_SECONDS = 30.0, 300.0
"""Seconds for reaching a server over HTTP, and for the next piece of an answer or of a stream of events."""

TOKENS_FOLDER = "tokens"
DATA_FOLDER = "data"


@dataclass(frozen=True, slots=True)
class McpSession:
    """A connection. ``lost`` is set when it ended by itself; ``changed`` waits until the server's tools do."""

    client: "Client"
    lost: anyio.Event
    changed: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class _ToolsChanged:
    """Rings when the server says that its tools are others now."""

    rung: anyio.Event = field(default_factory=anyio.Event)

    async def on_message(self, message: "IncomingMessage") -> None:
        """The SDK's message handler."""
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self.rung.set()

    async def wait(self) -> None:
        """Return when it rang since the last wait."""
        await self.rung.wait()
        self.rung = anyio.Event()


@dataclass(frozen=True, slots=True)
class Connector:
    """The dependencies of a connection.

    ``sandbox`` is where programs run. ``workspaces`` holds the blocks' folders. ``visit`` is how a person signs in.
    """

    home: Path
    workspaces: Path
    sandbox: Sandbox
    visit: Callable[[ServerConfig], SignInPage] = NoSignInPage

    def tokens(self, server: ServerConfig) -> OAuthTokenStore:
        """Return the store for a server's OAuth tokens."""
        return OAuthTokenStore(self.home / CONFIG_FOLDER / TOKENS_FOLDER, server)

    @asynccontextmanager
    async def connect(
        self,
        server: ServerConfig,
        mode: str | None = None,
        stderr: list[str] | None = None,
        person: FormAnswerer = decline_all,
    ) -> AsyncIterator[McpSession]:
        """A connection that has agreed on a protocol. ``stderr`` gets the last lines of a program's standard error,
        ``person`` answers what the server asks.

        Raises:
            ToolError: there is no sandbox for it.
            ConfigError: a variable that holds a secret is not set.
            Exception: whatever went wrong on the way.
        """
        bell = _ToolsChanged()
        words = [] if stderr is None else stderr
        way = self._stdio(server, words) if server.command else self._http(server)
        async with way as (transport, lost), self._client(server, transport, bell, mode, person) as client:
            yield McpSession(client, lost, bell.wait)

    def _client(
        self,
        server: ServerConfig,
        transport: "Transport",
        bell: _ToolsChanged,
        mode: str | None,
        person: FormAnswerer,
    ) -> "Client":
        from mcp import Client
        from mcp_types import Implementation

        return Client(
            transport,
            mode=mode or protocol_mode(server),
            client_info=Implementation(name="trunkline", title="Trunkline", version=trunkline.__version__),
            elicitation_callback=ElicitationHandler(server.identity, person),
            message_handler=bell.on_message,
            cache=None,
        )

    @asynccontextmanager
    async def _stdio(
        self, server: ServerConfig, stderr: list[str]
    ) -> "AsyncIterator[tuple[Transport, anyio.Event]]":
        from trunkline_mcp.stdio_transport import StdioTransport

        environment = {name: one.reveal() for name, one in server.env.items()}
        folder = self.writable_folder(server)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        process = await self.sandbox.start(
            server.command,
            workspace=folder,
            env={"HOME": "/workspace", **environment},
            read_only={str(one): one for one in server.readable},
            limits=SandboxLimits(
                memory=MEMORY,
                processes=PROCESSES,
                network=server.network,
                host_network=server.host_network,
            ),
            label=server.source,
        )
        async with process:
            pipes = StdioTransport(process, server.identity, stderr)
            yield pipes.streams(), pipes.ended

    @asynccontextmanager
    async def _http(self, server: ServerConfig) -> "AsyncIterator[tuple[Transport, anyio.Event]]":
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {name: one.reveal() for name, one in server.headers.items()}
        own = any(name.lower() == "authorization" for name in headers)
        auth = None if own else oauth_provider(server, self.tokens(server), self.visit(server))
        timeouts = httpx2.Timeout(CONNECT_SECONDS, read=max(READ_SECONDS, server.timeout))
        async with httpx2.AsyncClient(headers=headers, auth=auth, timeout=timeouts) as http:
            yield streamable_http_client(server.url, http_client=http), anyio.Event()

    def writable_folder(self, server: ServerConfig) -> Path:
        """Return the only folder that a server's program may write to: the named one, its block's workspace, or one
        of its own."""
        if server.folder is not None:
            return server.folder
        if server.block:
            return self.workspaces / server.block
        return self.home / CONFIG_FOLDER / DATA_FOLDER / server.name


def protocol_mode(server: ServerConfig) -> str:
    """Return the SDK's protocol mode: the handshake of versions before 2026, the newer one, or automatic detection."""
    if not server.protocol:
        return "auto"
    return "legacy" if server.protocol < "2026" else server.protocol
