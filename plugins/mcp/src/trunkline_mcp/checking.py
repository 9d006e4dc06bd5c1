"""What ``trunkline doctor`` says of MCP servers: entries that are left out, and lines that are down."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from trunkline import HealthResult
from trunkline_mcp.host import read_standings
from trunkline_mcp.servers import find_servers


def check_of(home: Path) -> Callable[[], Awaitable[HealthResult]]:
    """The check for a home."""

    async def check() -> HealthResult:
        found = find_servers(home)
        standings = read_standings(home)
        down = [
            f"{name}: {standing.why}"
            for name, standing in standings.items()
            if standing.state not in ("ready", "connecting")
        ]
        wrong = [f"{problem.where}: {problem.what}" for problem in found.problems]
        if not wrong and not down:
            return HealthResult("ok", _summary(len(found.active), standings))
        fatal = any(problem.fatal for problem in found.problems)
        hint = (
            'Mend the file; the others are used. "trunkline mcp list" shows all.'
            if wrong
            else ('See "trunkline mcp list"; a server that is down is tried again by itself.')
        )
        return HealthResult("error" if fatal else "warning", "; ".join([*wrong, *down]), hint=hint)

    return check


def _summary(servers: int, standings: dict[str, object]) -> str:
    if not servers:
        return "No MCP servers are configured."
    return f"{servers} MCP server{'s' if servers != 1 else ''}, {len(standings)} connected now."
