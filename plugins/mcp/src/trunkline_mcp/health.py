"""The health check of MCP servers: reports entries that are left out, and connections that are down."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from trunkline import HealthResult
from trunkline_mcp.host import read_statuses
from trunkline_mcp.server_config import load_servers
from trunkline_mcp.server_connection import ServerStatus


def server_check(home: Path) -> Callable[[], Awaitable[HealthResult]]:
    """The check for a home."""

    async def check() -> HealthResult:
        found = load_servers(home)
        statuses = read_statuses(home) or {}
        down = [
            f"{name}: {status.why}"
            for name, status in statuses.items()
            if status.state not in ("ready", "connecting")
        ]
        wrong = [f"{problem.where}: {problem.what}" for problem in found.problems]
        wrong += [
            f"{server.identity}: {name} is not set, so it cannot be used"
            for server in found.enabled
            if server.identity not in statuses
            for name in server.missing_variables(os.environ)
        ]
        if not wrong and not down:
            return HealthResult("ok", _summary(len(found.enabled), statuses))
        fatal = any(problem.fatal for problem in found.problems)
        hint = (
            'Correct the file, or set the missing variables; the others are used. "trunkline mcp list" shows all.'
            if wrong
            else '"trunkline mcp test NAME" shows the error; a server that is down is tried again automatically.'
        )
        return HealthResult("error" if fatal else "warning", "; ".join([*wrong, *down]), hint=hint)

    return check


def _summary(servers: int, statuses: dict[str, ServerStatus]) -> str:
    if not servers:
        return "No MCP servers are configured."
    named = f"{servers} MCP server{'s' if servers != 1 else ''}"
    if not statuses:
        return (
            f'{named}; no tools worker runs here, so none is connected. "trunkline mcp test NAME" tries one.'
        )
    connected = sum(status.state == "ready" for status in statuses.values())
    return f"{named}, {connected} connected now."
