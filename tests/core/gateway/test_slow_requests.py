"""Clients that send a request a byte at a time, or never to its end, against the gateway's door."""

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import anyio
import httpx
import pytest
from anyio.abc import SocketStream

import trunkline
from trunkline.contracts.models.adapter import ModelAdapter
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

HEAD = b"POST /conversations/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
TIMES = {"gateway.header_timeout": 0.4, "gateway.body_timeout": 0.4}


class Thinker:
    """A plugin whose model takes its time."""

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [ScriptedModel()]


@pytest.fixture(scope="module")
async def running(anyio_backend: str) -> AsyncIterator[Platform]:
    """One platform for all tests of the module, which leave nothing but closed connections."""
    settings = {**TIMES, "runtime.provider_adapter": "scripted"}
    async with platform(plugins=[Thinker()], config=settings) as running:
        yield running


async def opened(running: Platform) -> SocketStream:
    url = httpx.URL(running.url)
    stream = await anyio.connect_tcp(url.host, url.port or 80)
    stream.extra(anyio.abc.SocketAttribute.raw_socket).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


async def dripped(stream: SocketStream, first: bytes, drip: bytes) -> bytes:
    """Send ``first``, then ``drip`` again and again until the other side ends it; returns all that it said."""
    received = bytearray()
    with anyio.fail_after(60):
        async with stream, anyio.create_task_group() as tasks:
            tasks.start_soon(_drip, stream, first, drip)
            try:
                while True:
                    received += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                tasks.cancel_scope.cancel()
    return bytes(received)


async def _drip(stream: SocketStream, first: bytes, drip: bytes) -> None:
    try:
        await stream.send(first)
        while True:
            await anyio.sleep(0.05)
            await stream.send(drip)
    except anyio.BrokenResourceError:
        return


async def test_a_head_that_trickles_in_is_not_waited_for(running: Platform) -> None:
    """The request gets 408 and its connection is closed, although bytes still arrive."""
    assert (await dripped(await opened(running), b"GET /healthz HTTP/1.1\r\n", b"X: y\r\n")).startswith(
        b"HTTP/1.1 408"
    )


async def test_a_connection_that_sends_nothing_is_closed(running: Platform) -> None:
    """Silence is a head that does not come."""
    assert b" 408 " in await dripped(await opened(running), b"", b"")


async def test_a_body_that_trickles_in_is_not_waited_for(running: Platform) -> None:
    """The right credential does not help: 408, and the message is discarded."""
    head = HEAD + f"Authorization: Bearer {running.token}\r\nContent-Length: 100000\r\n\r\n".encode()
    said = await dripped(await opened(running), head + b'{"content":"', b"x")
    assert said.startswith(b"HTTP/1.1 408") and said.count(b"HTTP/1.1") == 1
    assert b"x-correlation-id: " in said and b"did not arrive in time. Send it again" in said


async def test_a_large_body_may_take_longer_than_the_time_for_a_body(running: Platform) -> None:
    """An archive over a slow network: what keeps arriving is read to its end."""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield bytes(64 * 1024)
            await anyio.sleep(0.05)

    headers = {"authorization": f"Bearer {running.token}", "content-type": "application/x-tar"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:
        read = await http.post("/api/memory/import", content=pieces(), params={"dry_run": "true"})
    assert read.status_code == 400 and "not recognised" in read.json()["metadata"]["reason"]


async def test_a_refused_body_gets_no_more_time_however_fast_it_arrives(running: Platform) -> None:
    """Who has no credential cannot keep a connection open by sending much."""
    said = await dripped(
        await opened(running), HEAD + b"Content-Length: 1000000000\r\n\r\n", bytes(16 * 1024)
    )
    assert said.startswith(b"HTTP/1.1 401") and said.count(b"HTTP/1.1") == 1


async def test_a_body_behind_a_refusal_is_not_swallowed_for_ever(running: Platform) -> None:
    """A client without a credential gets its refusal, and cannot keep the connection open by sending on."""
    said = await dripped(await opened(running), HEAD + b"Content-Length: 100000\r\n\r\n", b"x")
    assert said.startswith(b"HTTP/1.1 401") and said.count(b"HTTP/1.1") == 1


async def test_a_chunked_body_without_an_end_is_cut_off(running: Platform) -> None:
    """A body that says no length is timed like any other."""
    head = HEAD + f"Authorization: Bearer {running.token}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    assert b" 408 " in await dripped(await opened(running), head, b"1\r\n \r\n")


async def test_slow_requests_do_not_block_others(running: Platform) -> None:
    """A hundred half requests block no other client, and all are closed in the end."""
    async with AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(await opened(running)) for _ in range(100)]
        for stream in slow:
            await stream.send(b"GET /healthz HTTP/1.1\r\nX: ")
        async with httpx.AsyncClient(base_url=running.url, timeout=60) as http:
            assert (await http.get("/healthz")).status_code == 200
        with anyio.fail_after(60):
            for stream in slow:
                with pytest.raises(anyio.EndOfStream):
                    while True:
                        await stream.receive()


async def test_an_answer_may_take_longer_than_its_request(running: Platform) -> None:
    """Only requests are timed: a model may think longer, and a second request on the same connection is served."""
    headers = {"authorization": f"Bearer {running.token}"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:
        for _ in range(2):
            said = await http.post("/conversations/messages", json={"content": "wait:1 ;; say:done"})
            assert said.status_code == 200 and "event: done" in said.text
