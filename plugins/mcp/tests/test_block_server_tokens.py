"""Access tokens at a block that is served over HTTP: what they show, what they do, and when they end."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import msgspec
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from starlette.responses import PlainTextResponse

import trunkline
from tests.other_users import issue_token, share, store_token, write_identity, write_policy
from trunkline.api.gateway import TokenScope, open_block_guard
from trunkline.contracts.auth.tokens import AccessTokenRecord
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Policy
from trunkline.home.secret_file import load_secret
from trunkline.testing.platform import Platform, platform
from trunkline_mcp.block_server.block import ServedBlock
from trunkline_mcp.block_server.server import BlockServer

from .conformance.block_server_app import at_address

pytestmark = pytest.mark.anyio

SOON = 5.0
"""Seconds within which a revocation counts. It takes a tenth of one on a machine that does nothing else, and more while
the other tests run."""

FILES = {
    "blocks/main/block.toml": "",
    "blocks/main/own.md": "beans",
    "blocks/other/block.toml": "",
    "blocks/other/secret.md": "treasure",
}
"""In the name of the owner a block reads all of memory, so only the token keeps somebody out of the other block."""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}
ACCEPT = {"accept": "application/json, text/event-stream"}


class SlowTools:
    """A tool that takes its time, and one that changes something."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, for the next test."""
        self.begun, self.cancelled = anyio.Event(), anyio.Event()
        self.written: list[str] = []

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="read")
        async def sleep() -> str:
            """Sleep until cancelled."""
            self.begun.set()
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

        return [sleep, scribble]


@dataclass
class Served:
    """The block ``main``, served at ``url`` to whoever has a token. ``token`` is that of the home."""

    running: Platform
    tools: SlowTools
    url: str
    token: str

    @asynccontextmanager
    async def client(self, token: str, mode: Any = "auto") -> AsyncIterator[Client]:
        """A client with a token."""
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode) as client,
        ):
            yield client

    async def post(
        self, headers: dict[str, str] | Sequence[tuple[str, str]], body: Any = INITIALIZE
    ) -> httpx.Response:
        """The response to a request with these headers."""
        async with httpx.AsyncClient(timeout=60) as http:
            return await http.post(self.url, json=body, headers=[*dict(ACCEPT).items(), *pairs(headers)])

    async def status(self, token: str) -> int:
        """The status that a token gets."""
        return (await self.post(bearer(token))).status_code

    async def issue(self, identity: str = "owner", **fields: Any) -> tuple[str, AccessTokenRecord]:
        """A new token that counts already, and its record."""
        token, record = await issue_token(self.running, identity, **fields)
        await self.becomes(200, token)
        return token, record

    async def revoke(self, record: AccessTokenRecord) -> None:
        """Revoke a token."""
        await store_token(self.running.bus, msgspec.structs.replace(record, ended="revoked"))

    async def admit(self, identity: str, action: str = "chat", **fields: Any) -> str:
        """A token of somebody new, with whom the block is shared."""
        await write_identity(self.running.bus, identity)
        await share(self.running.bus, action, subject=identity, block="main")
        token, _ = await self.issue(identity, **fields)
        return token

    async def becomes(self, status: int, token: str, seconds: float = 10.0) -> None:
        """Wait until a token gets this status."""
        with anyio.fail_after(seconds):
            while await self.status(token) != status:  # noqa: ASYNC110  it is asked over HTTP
                await anyio.sleep(0.02)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def pairs(headers: dict[str, str] | Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(headers.items()) if isinstance(headers, dict) else list(headers)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Served]:
    tools = SlowTools()
    async with platform(workers=("memory", "tools"), plugins=[tools]) as running:
        token, _ = load_secret(running.home.token_file), load_secret(running.home.token_key)
        await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=FILES, actor="owner"), timeout=20.0)
        async with open_block_guard(running.bus, running.home.path, token, "main") as guard:
            server = BlockServer(ServedBlock(running.bus, "main", "claude"), guard).server()
            async with at_address(server, guard=guard, token="") as url:
                yield Served(running, tools, url, token)


@pytest.fixture
def served(shared: Served) -> Served:
    shared.tools.forget()
    return shared


def text(result: Any) -> str:
    return str(result.content[0].text)


async def test_a_bounded_token_shows_no_memory_of_another_block(served: Served) -> None:
    """A token for one block, and one of a collaborator: neither a tool nor a resource shows what the block may read
    and the token may not. The token of the home shows it."""
    bounded, _ = await served.issue(blocks=("main",))
    theirs = await served.admit("ann")
    there = {"path": "/blocks/other/secret.md"}
    async with served.client(served.token) as client:
        assert "treasure" in text(await client.call_tool("memory_read", there))
    for token in (bounded, theirs):
        async with served.client(token) as client:
            read = await client.call_tool("memory_read", there)
            assert read.is_error and "treasure" not in text(read)
            assert "secret.md" not in text(await client.call_tool("memory_list", {"path": "/blocks/other"}))
            assert "secret.md" not in text(await client.call_tool("memory_search", {"query": "treasure"}))
            written = await client.call_tool("memory_write", {**there, "content": "gone"})
            assert written.is_error
            uris = {str(one.uri) for one in (await client.list_resources()).resources}
            assert uris == {"memory://main/block.toml", "memory://main/own.md"}
            assert (await client.read_resource("memory://main/own.md")).contents[0].text == "beans"
            with pytest.raises(MCPError, match="There is no resource"):
                await client.read_resource("memory://main//blocks/other/secret.md")


async def test_a_token_that_does_not_reach_the_block_finds_nothing(served: Served) -> None:
    """A token for another block, and somebody with whom the block is not shared: there is no such block."""
    elsewhere, _ = await issue_token(served.running, blocks=("other",))
    await write_identity(served.running.bus, "bob")
    await share(served.running.bus, subject="bob", block="other")
    theirs, _ = await issue_token(served.running, "bob")
    for token in (elsewhere, theirs):
        await served.becomes(404, token)
        assert "main" not in (await served.post(bearer(token))).text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_scope_read_reads_and_calls_no_tool(mode: str, served: Served) -> None:
    """The smaller of the two counts: a token for reading of the owner, and a block that is shared for reading."""
    reading, _ = await served.issue(scope=TokenScope.READ)
    theirs = await served.admit(f"reader-{mode}", "read")
    for token in (reading, theirs):
        async with served.client(token, mode) as client:
            assert "scribble" in {tool.name for tool in (await client.list_tools()).tools}
            assert (await client.read_resource("memory://main/own.md")).contents[0].text == "beans"
            with pytest.raises(MCPError, match="not permitted"):
                await client.call_tool("scribble", {"text": "x"})
    assert served.tools.written == []


async def test_a_token_with_the_scope_chat_calls_tools(served: Served) -> None:
    """The call runs, under the name of the agent."""
    token, _ = await served.issue()
    async with served.client(token) as client:
        assert text(await client.call_tool("scribble", {"text": "x"})) == "written"
    assert served.tools.written == ["x"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_revocation_ends_a_running_call_at_once(mode: str, served: Served) -> None:
    """The tool is cancelled, and the token is refused from then on."""
    token, record = await served.issue()
    async with call_of_sleep(served, token, mode):
        await served.revoke(record)
        with anyio.fail_after(SOON):
            await served.tools.cancelled.wait()
    await served.becomes(401, token, SOON)


async def test_a_suspension_ends_a_running_call_at_once(served: Served) -> None:
    """So does the suspension of whoever has the token."""
    token = await served.admit("cem")
    async with call_of_sleep(served, token):
        with anyio.fail_after(SOON):
            await write_identity(served.running.bus, "cem", "suspended")
            await served.tools.cancelled.wait()
    await served.becomes(401, token, SOON)


async def test_a_call_ends_when_the_block_is_no_longer_shared(served: Served) -> None:
    """A denial counts for what runs already."""
    token = await served.admit("dora")
    async with call_of_sleep(served, token):
        denial = Policy(subject="dora", resource="block:main", action="read", effect="deny")
        await write_policy(served.running.bus, denial)
        with anyio.fail_after(5):
            await served.tools.cancelled.wait()
    await served.becomes(404, token)


@asynccontextmanager
async def call_of_sleep(served: Served, token: str, mode: str = "auto") -> AsyncIterator[None]:
    """A call under way, whose client may be told anything."""

    async def call() -> None:
        try:
            async with served.client(token, mode) as client:
                await client.call_tool("sleep", {})
        except (Exception, ExceptionGroup):
            return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        with anyio.fail_after(30):
            await served.tools.begun.wait()
        yield
        tasks.cancel_scope.cancel()


async def test_a_revocation_ends_an_open_stream_at_once(served: Served) -> None:
    """The stream of a session ends, though nothing was to be sent on it."""
    token, record = await served.issue()
    async with open_stream(served, token) as stream:
        await served.revoke(record)
        with anyio.fail_after(SOON):
            assert await read_to_end(stream) == b""


async def test_a_stream_ends_when_the_block_is_no_longer_shared(served: Served) -> None:
    """It ends as a stream does that has nothing more to say."""
    token = await served.admit("finn")
    async with open_stream(served, token) as stream:
        await write_policy(
            served.running.bus, Policy(subject="finn", resource="block:main", action="read", effect="deny")
        )
        with anyio.fail_after(5):
            assert await read_to_end(stream) == b""


@asynccontextmanager
async def open_stream(served: Served, token: str) -> AsyncIterator[httpx.Response]:
    """The stream of a new session of a token."""
    begun = await served.post(bearer(token))
    headers = bearer(token) | {
        "accept": "text/event-stream",
        "mcp-session-id": begun.headers["mcp-session-id"],
        "mcp-protocol-version": "2025-11-25",
    }
    async with (
        httpx.AsyncClient(timeout=60) as http,
        http.stream("GET", served.url, headers=headers) as stream,
    ):
        assert stream.status_code == 200
        yield stream


async def read_to_end(stream: httpx.Response) -> bytes:
    return b"".join([chunk async for chunk in stream.aiter_raw()])


async def test_a_session_of_one_token_does_not_exist_for_another(served: Served) -> None:
    """Also not for another token of the same person, whose scope may be smaller."""
    token, _ = await served.issue()
    smaller, _ = await served.issue(scope=TokenScope.READ)
    session = {
        "mcp-session-id": (await served.post(bearer(token))).headers["mcp-session-id"],
        "mcp-protocol-version": "2025-11-25",
    }
    body = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert (await served.post(bearer(token) | session, body)).status_code == 200
    for other in (smaller, served.token):
        assert (await served.post(bearer(other) | session, body)).status_code == 404


async def test_requests_of_unclear_sender_or_origin_are_refused(served: Served) -> None:
    """Two credentials, no or a forged one, the page of another origin, and another name of this machine."""
    token, record = await served.issue()
    own = ("authorization", f"Bearer {token}")
    for headers in (
        [], [own, ("x-api-key", token)], [own, own], [own, ("authorization", f"Bearer {served.token}")],
        [("authorization", f"Bearer {record.mac}")], [("authorization", f"Bearer {token}x")],
    ):  # fmt: skip
        assert (await served.post(headers)).status_code == 401, headers
    for name, value in (
        ("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site"),
        ("host", "evil.example"),
    ):  # fmt: skip
        assert (await served.post([own, (name, value)])).status_code == 403, name


async def test_somebody_whom_a_policy_bounds_is_not_served(served: Served) -> None:
    """Calls are made in the name of the agent, so a policy about what agents do for somebody would not count."""
    token = await served.admit("eve")
    await write_policy(
        served.running.bus, Policy(subject="eve", resource="tool:scribble", action="write", effect="deny")
    )
    await served.becomes(403, token)
    assert "own name" in (await served.post(bearer(token))).text


async def test_without_the_key_only_the_homes_token_counts(served: Served, tmp_path: Path) -> None:
    """A process that finds no key refuses every access token, and serves the owner."""
    token, _ = await served.issue()
    async with open_block_guard(served.running.bus, tmp_path, served.token, "main") as guard:
        transport = httpx.ASGITransport(app=guard.protect(PlainTextResponse("in")))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8421") as http:
            assert (await http.get("/", headers=bearer(token))).status_code == 401
            assert (await http.get("/", headers=bearer(served.token))).status_code == 200
