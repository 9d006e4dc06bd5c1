"""A server's tools as tools of the catalogue: their definitions, and how a call is made of one.

What a server says of its tools is believed as far as the owner trusts it. Of a server that is not trusted every tool
counts as one that sends something away (``send``), whatever its annotations promise.
"""

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import trunkline
from trunkline import ToolError
from trunkline.api.text import escape_tag
from trunkline.api.tool import OutcomeUnknown, ToolSpec
from trunkline_mcp.server_config import ServerConfig

if TYPE_CHECKING:
    from mcp_types import CallToolResult
    from mcp_types import Tool as Offered

LONGEST_DESCRIPTION = 4000
LARGEST_SCHEMA = 64 * 1024
LONGEST_NAME = 64

VERIFY = "It may have had its effect, in whole or in part. Check before you call it again."


class ToolConnection(Protocol):
    """The interface of a server connection, as far as tools use it."""

    server: ServerConfig

    async def call(
        self, name: str, arguments: dict[str, Any], context: trunkline.ToolContext
    ) -> "CallToolResult":
        """Have a tool run there. Raises ``NotSentError`` or ``ConnectionBrokenError``."""
        ...


class NotSentError(Exception):
    """The call never reached the server; the text says why."""


class ConnectionBrokenError(Exception):
    """The connection broke while the server was at it; the text says how."""


class McpTool(trunkline.Tool):
    """A tool that runs at a server, called there by its own name."""

    def __init__(self, line: ToolConnection, offered: "Offered") -> None:
        self.spec = tool_spec(line.server, offered)
        self._line = line
        self._name = offered.name

    async def __call__(self, context: trunkline.ToolContext, arguments: dict[str, Any]) -> str:
        """The server's answer, marked as data.

        Raises:
            ToolError: the server says that it failed, or was not asked at all.
            OutcomeUnknown: the connection broke while it was at it, and the tool does more than read.
        """
        from trunkline_mcp.result_text import fenced_text, plain_text

        try:
            result = await self._line.call(self._name, arguments, context)
        except NotSentError as error:
            raise ToolError(f"{self.spec.name} was not run: {error}", kind="unavailable") from error
        except ConnectionBrokenError as error:
            raise self._broken_error(str(error)) from error
        if result.is_error:
            raise ToolError(
                f"{self._line.server.source} says of {self._name}: {escape_tag(plain_text(result))}",
                kind="upstream_error",
            )
        return fenced_text(result, self._line.server.source)

    def _broken_error(self, why: str) -> ToolError:
        if self.spec.repeatable:
            return ToolError(
                f"{self.spec.name} gave no result: {why}. It may be called again.", kind="unavailable"
            )
        return OutcomeUnknown(f"The outcome of {self.spec.name} is unknown: {why}. {VERIFY}")


def build_tools(line: ToolConnection, offered: Iterable["Offered"]) -> tuple[list[trunkline.Tool], list[str]]:
    """The tools that can be used, and a sentence for each that cannot. Of two with one name the first counts."""
    tools: dict[str, trunkline.Tool] = {}
    left_out: list[str] = []
    for one in offered:
        name = tool_name(one.name)
        reason = f"the name {one.name!r} is there already" if name in tools else _rejection_reason(one)
        if reason:
            left_out.append(f"{one.name[:80]!r} is left out: {reason}")
        else:
            tools[name] = McpTool(line, one)
    return [*tools.values()], left_out


def _rejection_reason(offered: "Offered") -> str:
    if not offered.name.strip():
        return "it has no name"
    if offered.input_schema.get("type") != "object":
        return "its parameters are not a JSON schema of an object"
    try:
        size = len(json.dumps(offered.input_schema))
    except (TypeError, ValueError, RecursionError):
        return "its parameters cannot be written as JSON"
    return f"its schema of {size} characters is too large" if size > LARGEST_SCHEMA else ""


def tool_spec(server: ServerConfig, offered: "Offered") -> ToolSpec:
    """The definition of a tool for the catalogue."""
    said = (
        offered.description or offered.title or f"The tool {offered.name}; its server gives no description."
    ).strip()
    hints = offered.annotations
    trusted = server.trust == "trusted" and hints is not None
    return ToolSpec(
        name=tool_name(offered.name),
        description=f"[Of the MCP server {server.identity}] {escape_tag(said)[:LONGEST_DESCRIPTION]}",
        parameters=_disarmed_schema(offered.input_schema),
        effect=tool_effect(server, offered),
        idempotent=bool(trusted and hints is not None and hints.idempotent_hint),
        timeout=server.timeout,
        network=server.network or bool(server.url),
        source=server.source,
        blocks=(server.block,) if server.block else (),
    )


def tool_effect(server: ServerConfig, offered: "Offered") -> trunkline.Effect:
    """Return the effect of a tool's calls. The server's annotations are hints by the server itself."""
    hints = offered.annotations
    if server.trust != "trusted" or hints is None:
        return "send"
    if hints.read_only_hint:
        return "read"
    return "write" if hints.open_world_hint is False else "send"


def tool_name(name: str) -> str:
    """The name as models take it: letters, digits, ``_`` and ``-``, 64 at most."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:LONGEST_NAME] or "_"


def _disarmed_schema(schema: Any) -> Any:
    """The schema with descriptions that can end no mark around data."""
    if isinstance(schema, dict):
        return {
            key: escape_tag(value)[:LONGEST_DESCRIPTION]
            if key in ("description", "title") and isinstance(value, str)
            else _disarmed_schema(value)
            for key, value in schema.items()
        }
    return [_disarmed_schema(one) for one in schema] if isinstance(schema, list) else schema
