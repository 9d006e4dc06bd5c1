"""Our host as the conformance suite drives a client. Connects as the tools worker does and calls the tools that the
scenario is about.

The suite starts a program for each of its scenarios, many at once. To load Python and the SDK only once, this one
stays, and the started program is ``client_launcher.py``. That program passes on the address and the environment.
"""

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from anyio.abc import SocketStream
from mcp.shared.auth import AuthorizationCodeResult

from trunkline import Person, ToolError
from trunkline.contracts.sandbox.sandbox import NoSandbox
from trunkline.testing.contexts import tool_context
from trunkline_mcp.connector import Connector
from trunkline_mcp.form_fields import LEAVE_OUT
from trunkline_mcp.server_config import ServerConfig, parse_server
from trunkline_mcp.server_connection import ServerConnection
from trunkline_mcp.tools import McpTool

AT_ONCE = 4
"""Scenarios at once: the suite starts all of them together, with a long timeout."""

METADATA = "https://conformance-test.local/client-metadata.json"


class Browser:
    """A person who opens the page and agrees at once."""

    callback = "http://localhost:3000/callback"

    def __init__(self, server: ServerConfig) -> None:
        self._place = ""

    async def open_page(self, url: str) -> None:
        async with httpx2.AsyncClient() as http:
            self._place = (await http.get(url)).headers["location"]

    async def wait_for_callback(self) -> AuthorizationCodeResult:
        back = {name: values[0] for name, values in parse_qs(urlsplit(self._place).query).items()}
        return AuthorizationCodeResult(
            code=back.get("code", ""), state=back.get("state"), iss=back.get("iss")
        )


class Agreeable(Person):
    """A person who leaves optional fields out, accepts defaults, and has a number or a word for the rest."""

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        if LEAVE_OUT in options:
            return LEAVE_OUT
        return options[0] if options else "5"

    async def tell(self, channel: str, text: str) -> None:
        raise ToolError("This person has no channels.")


def sample(schema: Mapping[str, Any]) -> Any:
    """A value of the schema."""
    return {"string": "text", "number": 3, "integer": 5, "boolean": True, "array": []}.get(
        str(schema.get("type")), {}
    )


def server_at(url: str, reported: Mapping[str, Any]) -> ServerConfig:
    oauth = {"client_metadata_url": METADATA}
    if reported.get("client_id"):
        oauth |= {"client_id": reported["client_id"], "client_secret": reported.get("client_secret", "")}
    return parse_server("suite", {"url": url, "oauth": oauth, "trust": "trusted", "start_timeout": 100})


async def scenario(url: str, environ: Mapping[str, str]) -> None:
    """One scenario, from connecting to the end of the last call."""
    reported = json.loads(environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    server = server_at(url, reported)
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        dialler = Connector(home, home / "workspaces", NoSandbox(), Browser)
        async with anyio.create_task_group() as tasks:
            line = ServerConnection(server, dialler, lambda: None)
            tasks.start_soon(line.run)
            with anyio.fail_after(100):
                while line.status.state != "ready":
                    await anyio.sleep(0.02)
                    if line.status.state != "connecting" and line.status.why:
                        raise RuntimeError(f"not connected: {line.status.why}")
            await call_all(line, reported, home)
            tasks.cancel_scope.cancel()


async def call_all(line: ServerConnection, reported: Mapping[str, Any], home: Path) -> None:
    """Make the calls of the scenario; without any, call each tool once."""
    by_name = {tool._name: tool for tool in line.tools if isinstance(tool, McpTool)}
    wanted = [(one["name"], one["arguments"]) for one in reported.get("toolCalls", ())]
    if not wanted:
        wanted = [
            (name, {key: sample(part) for key, part in tool.spec.parameters.get("properties", {}).items()})
            for name, tool in by_name.items()
        ]
    for name, arguments in wanted:
        with suppress(ToolError):  # that some fail is what their scenario is about
            await by_name[name](tool_context(home, person=Agreeable()), arguments)


async def answer(places: anyio.CapacityLimiter, stream: SocketStream) -> None:
    """Read a scenario, run it, and report whether it passed."""
    async with stream:
        request = json.loads(await stream.receive(1_000_000))
        try:
            async with places:
                await scenario(request["url"], request["environ"])
            reported = "ok"
        except Exception as error:
            reported = f"{type(error).__name__}: {error}"
        await stream.send(reported.encode())


async def main(place: str) -> None:
    """Answer at this socket until killed."""
    async with await anyio.create_unix_listener(place) as listener:
        await listener.serve(partial(answer, anyio.CapacityLimiter(AT_ONCE)))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
