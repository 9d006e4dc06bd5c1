"""A block served to other agents: on pipes as a subprocess, and over HTTP with the home's token."""

import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.server.lowlevel import Server

import trunkline
from trunkline._util.untrusted_text import unwrap_tool_result
from trunkline.testing.platform import Platform, clean_environ, platform
from trunkline_mcp.block_server.block import ServedBlock
from trunkline_mcp.block_server.server import BlockServer
from trunkline_mcp.block_server.transports import build_app

from .conformance.block_server_app import TOKEN, at_address, owner_guard

pytestmark = pytest.mark.anyio

TRUNKLINE = str(Path(sys.executable).with_name("trunkline"))


class Tools:
    """Tools that say who called them, take their time, and want to change something."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, for the next test."""
        self.cancelled = anyio.Event()
        self.written: list[str] = []

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="read")
        def who(context: trunkline.ToolContext) -> str:
            """Say who calls."""
            return f"{context.actor} of {context.block}"

        @trunkline.tool(effect="read")
        async def sleep() -> str:
            """Sleep until cancelled."""
            try:
                await anyio.sleep(60)
            finally:
                self.cancelled.set()
            return "slept"

        @trunkline.tool(effect="write")
        def scribble(text: str) -> str:
            """Write."""
            self.written.append(text)
            return "written"

        @trunkline.tool(effect="write")
        async def ponder(context: trunkline.ToolContext) -> str:
            """Ask during the call, and write the answer to a file."""
            try:
                await context.person.ask("Which one?")
            except trunkline.NoAnswer:
                self.written.append("pondered")
            finally:
                self.cancelled.set()
            return "pondered"

        return [who, sleep, scribble, ponder]


@asynccontextmanager
async def started_platform(tools: Tools, **config: Any) -> AsyncIterator[Platform]:
    settings = {name.replace("__", "."): value for name, value in config.items()}
    async with platform(workers=("memory", "tools"), plugins=[tools], config=settings) as running:
        yield running


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[tuple[Tools, Platform]]:
    """One platform for the tests without settings of their own."""
    tools = Tools()
    async with started_platform(tools) as running:
        yield tools, running


@pytest.fixture
def tools(shared: tuple[Tools, Platform]) -> Tools:
    """The tools of the shared platform, which have done nothing."""
    shared[0].forget()
    return shared[0]


@pytest.fixture
async def url(shared: tuple[Tools, Platform], tools: Tools) -> AsyncIterator[str]:
    """The address of a block server of the shared platform."""
    async with at_address(server_of(shared[1])) as found:
        yield found


def server_of(running: Platform) -> Server[Any]:
    return BlockServer(ServedBlock(running.bus, "main", "claude")).server()


def text(result: Any) -> str:
    return str(result.content[0].text)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_another_agent_uses_tools_and_memory_under_its_own_name(mode, url):
    """Both protocols work: tools with annotations of their effects, results, errors, files of memory."""
    async with Client(url, mode=mode) as client:
        assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["who"].annotations.read_only_hint and not tools["scribble"].annotations.read_only_hint
        assert text(await client.call_tool("who", {})) == "agent:claude of main"
        await client.call_tool("memory_write", {"path": "notes/a b.md", "content": "beans"})
        uris = {str(one.uri) for one in (await client.list_resources()).resources}
        assert uris == {"memory://main/block.toml", "memory://main/notes/a%20b.md"}
        assert (await client.read_resource("memory://main/notes/a%20b.md")).contents[0].text == "beans"
        wrong = await client.call_tool("scribble", {"nothing": "x"})
        assert wrong.is_error and "scribble" in text(wrong)
        with pytest.raises(MCPError):
            await client.call_tool("no_such_tool", {})


async def test_files_outside_the_block_are_not_found(url):
    """The answer is the same for a missing file and for one outside of the other agent's block."""
    foreign = (
        "memory://main/../../policies/x.json", "memory://other/notes.md", "file:///etc/passwd", "memory://main/",
        "memory://main/%2e%2e/other/monitor.md", "memory://main/no.md", "memory://main//etc/passwd",
    )  # fmt: skip
    async with Client(url) as client:
        for uri in foreign:
            with pytest.raises(MCPError, match="There is no resource"):
                await client.read_resource(uri)


async def test_a_call_that_needs_approval_is_refused_with_a_hint():
    """The other agent cannot approve in a person's place."""
    tools = Tools()
    async with (
        started_platform(tools, permissions__approvals="some") as running,
        at_address(server_of(running)) as url,
        Client(url) as client,
    ):
        result = await client.call_tool("scribble", {"text": "x"})
        assert result.is_error and "trunkline permissions main" in text(result)
        assert tools.written == []
        assert text(await client.call_tool("who", {})) == "agent:claude of main"


async def test_a_call_that_asks_a_person_is_stopped_with_unknown_outcome(tools, url):
    """The call waits for no person, and does not continue later without the other agent's knowledge."""
    async with Client(url) as client:
        result = await client.call_tool("ponder", {})
        assert result.is_error and "running call was stopped" in text(result)
        assert "Nothing was run" not in text(result)
        with anyio.fail_after(60):
            await tools.cancelled.wait()
        assert tools.written == []


async def test_a_call_that_the_other_agent_cancels_is_cancelled_here(tools, url):
    """A call without a caller does not continue to run."""
    async with Client(url, mode="legacy") as client:
        with anyio.move_on_after(1.5):
            await client.call_tool("sleep", {})
        with anyio.fail_after(60):
            await tools.cancelled.wait()


async def test_over_http_a_request_without_the_token_is_refused():
    """No token, a wrong one, one without its scheme, two of them, one in the address."""
    refused = [{}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}, {"cookie": f"token={TOKEN}"}]
    transport = httpx.ASGITransport(app=build_app(Server("x"), owner_guard()))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8421") as http:
        for headers in refused:
            assert (await http.post(f"/mcp?token={TOKEN}", headers=headers, json={})).status_code == 401
        both = [("authorization", f"Bearer {TOKEN}"), ("authorization", "Bearer wrong")]
        assert (await http.post("/mcp", headers=both, json={})).status_code == 401


async def test_a_client_starts_the_block_server_as_a_subprocess(tmp_path):
    """``trunkline mcp serve`` on pipes: nothing but the protocol on standard output, no platform needed."""
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(tmp_path)}
    words = ["mcp", "serve", "main", "--as", "claude"]
    async with Client(StdioServerParameters(command=TRUNKLINE, args=words, env=environ)) as client:
        assert client.server_info.title == "Trunkline: main"
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"memory_read", "read_file"} <= names
        assert json.loads(unwrap_tool_result(text(await client.call_tool("memory_list", {})))) == []


async def test_over_http_the_homes_token_is_accepted_until_the_server_stops(tmp_path):
    """The address comes on standard error; the home's token opens it."""
    (tmp_path / "token").write_text("t0ken\n")
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(tmp_path)}
    async with await anyio.open_process(
        [TRUNKLINE, "mcp", "serve", "main", "--http"], env=environ
    ) as process:
        try:
            await check_connection(await address(process))
        finally:
            process.terminate()
            with anyio.move_on_after(10):
                await process.wait()
            if process.returncode is None:
                process.kill()


async def check_connection(url: str) -> None:
    about = {"capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    params = {"protocolVersion": "2025-11-25", **about}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    headers = {"authorization": "Bearer t0ken", "accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(timeout=60) as http:
        assert (await http.post(url, json=body)).status_code == 401
        answer = await http.post(url, json=body, headers=headers)
        assert answer.status_code == 200 and "Trunkline: main" in answer.text
        foreign = await http.post(url, json=body, headers={**headers, "host": "evil.example"})
        assert foreign.status_code in (403, 421)


async def address(process: Any) -> str:
    said = b""
    with anyio.fail_after(60):
        while b"Stop with" not in said:
            said += await process.stderr.receive()
    return str(said.split(b"Serving at ")[1].split(b". The token")[0].decode())


async def test_an_unknown_block_is_not_served(tmp_path):
    """The error names those that are; a port that is none is wrong usage."""
    (tmp_path / "memory/blocks/garden").mkdir(parents=True)
    (tmp_path / "memory/blocks/garden/block.toml").write_text("")
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(tmp_path)}
    done = await anyio.run_process([TRUNKLINE, "mcp", "serve", "gardn"], env=environ, check=False)
    assert done.returncode == 1 and done.stdout == b""
    assert b"no block gardn" in done.stderr and b"There are: garden." in done.stderr
    wrong = [TRUNKLINE, "mcp", "serve", "garden", "--http", "--port", "99999"]
    assert (await anyio.run_process(wrong, env=environ, check=False)).returncode == 2


async def test_a_port_in_use_is_an_error_naming_the_port(tmp_path):
    """It names the port and what to do, and is no fault of the program."""
    (tmp_path / "token").write_text("t" * 32)
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(tmp_path)}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [TRUNKLINE, "mcp", "serve", "main", "--http", "--port", port]
        done = await anyio.run_process(words, env=environ, check=False)
    assert done.returncode == 1 and port.encode() in done.stderr and b"another --port" in done.stderr


async def test_the_http_server_refuses_to_start_without_a_token(tmp_path):
    """The error names the command that creates a token."""
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(tmp_path)}
    done = await anyio.run_process([TRUNKLINE, "mcp", "serve", "main", "--http"], env=environ, check=False)
    assert done.returncode == 1 and b"trunkline up" in done.stderr
