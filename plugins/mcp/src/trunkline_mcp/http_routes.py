"""``/x/trunkline-mcp``: the servers over HTTP. A server that is added is a program that runs, so all routes have the
scope of the owner, and the gateway lets no smaller token in.

Values of ``env`` and ``headers`` go in as names of variables, and texts that are in the file never come out.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from anyio import Lock
from anyio.to_thread import run_sync

from trunkline import ErrorCode, TrunklineError
from trunkline.api.gateway import HttpRoute
from trunkline_mcp.config_writer import (
    NoServerError,
    ServerExistsError,
    change_server,
    forget_server,
    put_server,
)
from trunkline_mcp.env_references import EnvReference
from trunkline_mcp.host import read_statuses, wait_for_status
from trunkline_mcp.server_config import ServerConfig, load_servers
from trunkline_mcp.server_connection import ServerStatus

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    Endpoint = Callable[[Request], Awaitable[Response]]

log = logging.getLogger(__name__)

T = TypeVar("T", bound=msgspec.Struct)

SETTABLE = frozenset(
    {"command", "args", "env", "url", "headers", "trust", "network", "folder", "readable", "timeout", "start_timeout",
     "disabled", "description"}
)  # fmt: skip
"""The keys of an entry that a request may set. The others are changed in the file alone."""

NEAR = 5.0
"""Seconds beyond a server's own time to start: until the tools worker has read the file."""


STATUS = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.CONFLICT: 409,
    ErrorCode.ENGINE_UNAVAILABLE: 503,
}


class RefusedError(Exception):
    """A request that is refused, with the sentence that its sender is told. It has no value of a variable."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class NewServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body that adds a server, for one block or for all of them."""

    name: str
    entry: dict[str, Any]
    block: str = ""


class ServerChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body that changes a server: a JSON merge patch (RFC 7396) of its entry. What it does not name stays."""

    server: str
    entry: dict[str, Any]


class ServerName(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body that names a server: ``brave``, or ``garden/brave`` for one that only the block garden has."""

    server: str


class ServerRoutes:
    """Answers requests about the servers of a home."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._changing = Lock()

    def routes(self) -> Iterable[HttpRoute]:
        """Return the routes."""
        return [
            HttpRoute("/servers", ("GET",), self.show),
            HttpRoute("/servers", ("POST",), _answering(self.add)),
            HttpRoute("/servers", ("PATCH",), _answering(self.change)),
            HttpRoute("/servers/remove", ("POST",), _answering(self.remove)),
            HttpRoute("/servers/test", ("POST",), _answering(self.test)),
        ]

    async def show(self, request: "Request") -> "Response":
        """``GET /x/trunkline-mcp/servers``: each server with its entry, state and tools, and what is wrong in the
        files. ``is_running`` is whether a tools worker of this home keeps connections."""
        return _json(await run_sync(self._shown))

    async def add(self, request: "Request") -> "Response":
        """``POST /x/trunkline-mcp/servers`` with ``{"name": NAME, "block": BLOCK, "entry": {...}}``. 409 if there is a
        server of this name."""
        new = await _body(request, NewServer)
        _check_entry(new.entry)
        await self._write(lambda: put_server(self._home, new.block, new.name, new.entry, replace=False))
        log.warning("the MCP server %s was added over HTTP", new.name)
        return await self.show(request)

    async def change(self, request: "Request") -> "Response":
        """``PATCH /x/trunkline-mcp/servers`` with ``{"server": SERVER, "entry": {...}}``: null removes a key."""
        changes = await _body(request, ServerChanges)
        _check_entry(changes.entry)
        block, _, name = changes.server.rpartition("/")
        await self._write(lambda: change_server(self._home, block, name, changes.entry))
        log.warning("the MCP server %s was changed over HTTP", changes.server)
        return await self.show(request)

    async def remove(self, request: "Request") -> "Response":
        """``POST /x/trunkline-mcp/servers/remove`` with ``{"server": SERVER}``; its sign-in is forgotten, too."""
        wanted = await _body(request, ServerName)
        await self._write(lambda: forget_server(self._home, wanted.server))
        log.warning("the MCP server %s was removed over HTTP", wanted.server)
        return await self.show(request)

    async def test(self, request: "Request") -> "Response":
        """``POST /x/trunkline-mcp/servers/test`` with ``{"server": SERVER}``: its state as soon as it is connected or
        has failed, by the files of now."""
        wanted = await _body(request, ServerName)
        servers = {one.identity: one for one in (await run_sync(load_servers, self._home)).enabled}
        if wanted.server not in servers:
            raise RefusedError(
                ErrorCode.NOT_FOUND, f"There is no server {wanted.server!r} that is switched on."
            )
        server = servers[wanted.server]
        status = await wait_for_status(self._home, server, server.start_timeout + NEAR)
        if status is None:
            raise RefusedError(
                ErrorCode.ENGINE_UNAVAILABLE, "No tools worker of this home reports its state."
            )
        return _json(_item(server, status, is_running=True))

    def _shown(self) -> dict[str, Any]:
        found, statuses = load_servers(self._home), read_statuses(self._home)
        states = statuses or {}
        is_running = statuses is not None
        return {
            "is_running": is_running,
            "servers": [_item(one, states.get(one.identity), is_running=is_running) for one in found.servers],
            "problems": [{"where": Path(one.where).name, "what": one.what} for one in found.problems],
        }

    async def _write(self, change: Callable[[], None]) -> None:
        async with self._changing:
            try:
                await run_sync(change)
            except ServerExistsError as error:
                raise RefusedError(ErrorCode.CONFLICT, error.sentence) from error
            except NoServerError as error:
                raise RefusedError(ErrorCode.NOT_FOUND, error.sentence) from error
            except TrunklineError as error:
                raise RefusedError(
                    ErrorCode.INVALID_REQUEST, f"{error.sentence} {error.hint}".strip()
                ) from error


def _answering(endpoint: "Endpoint") -> "Endpoint":
    """Return the endpoint with an answer to what it refuses, in the form of the gateway's errors."""

    async def answered(request: "Request") -> "Response":
        try:
            return await endpoint(request)
        except RefusedError as error:
            body = {"code": error.code, "message": error.reason, "metadata": {"reason": error.reason}}
            return _json(body, STATUS[error.code])

    return answered


def _check_entry(entry: Mapping[str, Any]) -> None:
    """Refuse what is changed in the file alone: unknown keys, this machine's own network, and texts in place of
    variables."""
    if unknown := sorted(entry.keys() - SETTABLE):
        raise RefusedError(
            ErrorCode.INVALID_REQUEST, f"{unknown[0]!r} is changed in the file alone: mcp.json in the home."
        )
    if entry.get("network") == "host":
        sentence = "This machine's own network is permitted in the file alone: mcp.json in the home."
        raise RefusedError(ErrorCode.INVALID_REQUEST, sentence)
    for key in ("env", "headers"):
        values = entry.get(key)
        for name, value in values.items() if isinstance(values, dict) else ():
            if value is not None and not (isinstance(value, dict) and value.keys() == {"env"}):
                sentence = f'{key} {name} takes the name of a variable, as {{"env": "NAME"}}, and no text.'
                raise RefusedError(ErrorCode.INVALID_REQUEST, sentence)


def _item(server: ServerConfig, status: ServerStatus | None, *, is_running: bool) -> dict[str, Any]:
    state = (
        "disabled" if server.disabled else status.state if status else "connecting" if is_running else "off"
    )
    return {
        "server": server.identity,
        "command": server.command,
        "url": server.url,
        "env": _variables(server.env),
        "headers": _variables(server.headers),
        "trust": server.trust,
        "network": "host" if server.host_network else server.network,
        "folder": str(server.folder or ""),
        "readable": [str(one) for one in server.readable],
        "disabled": server.disabled,
        "state": state,
        "why": status.why if status and status.state != "ready" else "",
        "title": status.title if status else "",
        "protocol": status.protocol if status else "",
        "tools": status.tools if status else (),
        "left_out": status.left_out if status else (),
    }


def _variables(values: Mapping[str, EnvReference]) -> dict[str, str | None]:
    """Return the variable behind each name; None for a text, which stays in the file."""
    return {
        name: one.variables[0] if one.variables and one.text == f"${{{one.variables[0]}}}" else None
        for name, one in values.items()
    }


async def _body(request: "Request", kind: type[T]) -> T:
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"The body is not as expected: {error}.") from error


def _json(body: Any, status: int = 200) -> "Response":
    from starlette.responses import Response

    headers = {"cache-control": "no-store"}
    return Response(msgspec.json.encode(body), status, media_type="application/json", headers=headers)
