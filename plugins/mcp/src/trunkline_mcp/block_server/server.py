"""A served block in the protocol's words: tools, and memory as resources. Made of the SDK's server; no transport."""

import logging
import mimetypes
import weakref
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

import trunkline
from trunkline.api.bus import BusError, Refusal
from trunkline.api.gateway import BlockGuard, Identity, TokenScope
from trunkline.api.tool import ToolSpec
from trunkline_mcp.block_server.block import CallRefusedError, ServedBlock

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.context import ServerRequestContext as Context
    from mcp.server.session import ServerSession

log = logging.getLogger(__name__)

PAGE_SIZE = 250
"""Tools or resources on one page."""

T = TypeVar("T")

SCHEME = "memory://"
TEMPLATE = "memory://{block}/{{+path}}"
MOST_SUGGESTED = 100

READING = frozenset({
    "initialize", "ping", "server/discover", "tools/list", "resources/list", "resources/templates/list",
    "resources/read", "completion/complete", "subscriptions/listen",
})  # fmt: skip
"""The methods for which the scope ``read`` is enough. Every other one needs ``chat``, as a message does."""


class BlockServer:
    """Serves one block. ``changes`` receives the notifications for listening clients (2026-07-28).

    ``guard`` bounds each request by the identity that sends it over HTTP. Without one, whoever has the pipes may do
    what the agent may do.
    """

    def __init__(self, block: ServedBlock, guard: BlockGuard | None = None) -> None:
        self.changes = InMemorySubscriptionBus()
        self._block = block
        self._guard = guard
        self._sessions: weakref.WeakSet[ServerSession] = weakref.WeakSet()

    def server(self) -> "Server[Any]":
        """The SDK's server, ready for a transport."""
        server: Server[Any] = Server(
            "trunkline",
            version=trunkline.__version__,
            title=f"Trunkline: {self._block.block}",
            instructions=f"The tools and the memory of the block {self._block.block}. Some need a person's approval.",
            on_list_tools=self._tools,
            on_call_tool=self._call,
            on_list_resources=self._resources,
            on_list_resource_templates=self._templates,
            on_read_resource=self._read,
            on_completion=self._complete,
            on_subscriptions_listen=ListenHandler(self.changes),
        )
        if self._guard is not None:
            server.middleware.append(partial(self._check, self._guard))
        return server

    async def _check(self, guard: BlockGuard, ctx: "Context", call_next: "CallNext") -> "HandlerResult":
        """Handle a request while its sender may use the method. A notification has no handler here."""
        if ctx.request_id is None:
            return await call_next(ctx)
        scope = TokenScope.READ if ctx.method in READING else TokenScope.CHAT
        try:
            return await guard.run(_identity_of(ctx), scope, partial(call_next, ctx))
        except Refusal as refused:
            raise MCPError(types.INVALID_REQUEST, f"{ctx.method}: {refused.message}") from refused

    def _block_for(self, context: "Context") -> ServedBlock:
        """The block, as the sender of a request may use it."""
        return self._block if self._guard is None else self._block.bounded_by(_identity_of(context))

    async def watch_tools(self, seconds: float) -> None:
        """Look now and then whether the block's tools are others, and tell those who listen. Until cancelled."""
        before: tuple[ToolSpec, ...] | None = None
        while True:
            try:
                now = await self._block.tools()
            except (CallRefusedError, BusError) as error:
                log.debug("the tools of %s cannot be listed: %s", self._block.block, error)
            else:
                if before is not None and now != before:
                    await self._notify_changes()
                before = now
            await anyio.sleep(seconds)

    async def _notify_changes(self) -> None:
        await self.changes.publish(ToolsListChanged())
        for session in list(self._sessions):
            try:
                await session.send_tool_list_changed()
            except Exception as error:  # the other side is gone, which is its own business
                log.debug("a client could not be notified of the change: %s", error)

    async def _tools(
        self, context: "Context", params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if context.protocol_version < "2026":  # newer ones listen
            self._sessions.add(context.session)
        specs, following = paginate(await self._specs(context), params)
        return types.ListToolsResult(tools=[tool_definition(spec) for spec in specs], next_cursor=following)

    async def _specs(self, context: "Context") -> tuple[ToolSpec, ...]:
        try:
            return await self._block_for(context).tools()
        except CallRefusedError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error

    async def _call(self, context: "Context", params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in {spec.name for spec in await self._specs(context)}:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name!r} here.")

        async def report(signs: int, note: str) -> None:
            await context.session.report_progress(signs, message=note or None)

        try:
            block = self._block_for(context)
            output, failed = await block.call(params.name, dict(params.arguments or {}), report), False
        except CallRefusedError as error:
            output, failed = str(error), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=output)], is_error=failed)

    async def _resources(
        self, context: "Context", params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        try:
            files = await self._block_for(context).list_files()
        except CallRefusedError:
            files = []  # a block whose memory is closed to others has none to show
        entries, following = paginate(files, params)
        resources = [
            types.Resource(
                uri=self._uri(one.path), name=one.path, mime_type=mime_type(one.path), size=one.size
            )
            for one in entries
        ]
        return types.ListResourcesResult(resources=resources, next_cursor=following)

    async def _templates(
        self, context: "Context", params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=TEMPLATE.format(block=self._block.block),
            name="memory",
            description="A file of memory.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read(
        self, context: "Context", params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        begin = f"{SCHEME}{self._block.block}/"
        if not uri.startswith(begin):
            raise resource_not_found(uri)
        path = unquote(uri.removeprefix(begin))
        try:
            text = await self._block_for(context).read_file(path)
        except CallRefusedError as error:
            raise resource_not_found(uri) from error
        held = types.TextResourceContents(uri=uri, mime_type=mime_type(path), text=text)
        return types.ReadResourceResult(contents=[held])

    async def _complete(
        self, context: "Context", params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Paths of memory that begin with what was typed."""
        try:
            found = [
                one.path
                for one in await self._block_for(context).list_files()
                if one.path.startswith(params.argument.value)
            ]
        except CallRefusedError:
            found = []
        shown = types.Completion(
            values=found[:MOST_SUGGESTED], total=len(found), has_more=len(found) > MOST_SUGGESTED
        )
        return types.CompleteResult(completion=shown)

    def _uri(self, path: str) -> str:
        return f"{SCHEME}{self._block.block}/{quote(path)}"


def _identity_of(context: "Context") -> Identity:
    """The identity of a request over HTTP. Raises MCPError for a request that did not come over HTTP."""
    if context.request is None:
        raise MCPError(types.INTERNAL_ERROR, "The request has no sender.")
    return BlockGuard.identity_of(context.request.scope)


def tool_definition(spec: ToolSpec) -> types.Tool:
    """A tool's definition; the hints are what its effect says."""
    reads = spec.effect == "read"
    hints = types.ToolAnnotations(
        read_only_hint=reads,
        destructive_hint=not reads,
        idempotent_hint=spec.repeatable,
        open_world_hint=spec.effect in ("send", "exec") or spec.network,
    )
    return types.Tool(
        name=spec.name, description=spec.description, input_schema=spec.parameters, annotations=hints
    )


def paginate(
    items: Sequence[T], params: types.PaginatedRequestParams | None
) -> tuple[Sequence[T], str | None]:
    """A page, and the cursor of the next one."""
    given = params.cursor if params is not None else None
    if given is not None and not given.isdecimal():
        raise MCPError(types.INVALID_PARAMS, "This server did not issue that cursor.")
    begin = int(given or 0)
    end = begin + PAGE_SIZE
    return items[begin:end], str(end) if end < len(items) else None


def resource_not_found(uri: str) -> MCPError:
    """There is no such resource, or it is none of the other agent's business: the same answer for both (SEP-2164)."""
    return MCPError(types.INVALID_PARAMS, f"There is no resource {uri} here.", {"uri": uri})


def mime_type(path: str) -> str:
    """Return the MIME type of a text by its file name."""
    known = {".md": "text/markdown", ".toml": "application/toml", ".jsonl": "application/jsonl"}
    suffix = path[path.rfind(".") :] if "." in path else ""
    return known.get(suffix) or mimetypes.guess_type(path)[0] or "text/plain"
