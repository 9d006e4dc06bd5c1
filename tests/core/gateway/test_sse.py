"""Server-sent events on the wire: encoding, signs of life, clients that leave, a server that stops."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from trunkline.workers.gateway.http.schemas.event_schemas import TextDeltaData
from trunkline.workers.gateway.http.sse import KEEP_ALIVE, EventStream, encode

pytestmark = pytest.mark.anyio


class Client:
    """The other end of an ASGI response."""

    def __init__(self) -> None:
        self.gone = anyio.Event()
        self.chunks: list[bytes] = []
        self.ended = False
        self.some = anyio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.body":
            self.chunks += [message["body"]] if message["body"] else []
            self.ended = not message["more_body"]
            self.some.set()


class Source:
    """The source of a response; ``closed`` reports whether it was released."""

    def __init__(self, *chunks: bytes, endless: bool = False) -> None:
        self._chunks = chunks
        self._endless = endless
        self.closed = False

    async def stream(self) -> AsyncGenerator[bytes, None]:
        try:
            for chunk in self._chunks:
                yield chunk
            if self._endless:
                await anyio.sleep_forever()
        finally:
            self.closed = True


def response(source: Source, closing: anyio.Event | None = None) -> EventStream:
    return EventStream(source.stream(), closing=closing or anyio.Event(), headers={}, keep_alive=0.05)


def test_an_event_is_one_block_of_lines() -> None:
    """Line breaks of the content stay inside the JSON, of any kind."""
    data = TextDeltaData(content="a\nb\r\u2028c")
    encoded = encode(data, event="text-delta", id="1.2")
    assert encoded == b'id: 1.2\nevent: text-delta\ndata: {"content":"a\\nb\\r\xe2\x80\xa8c"}\n\n'


async def test_every_event_is_sent_before_the_response_ends() -> None:
    """The response ends when its source does."""
    client, source = Client(), Source(b"1", b"2")
    await response(source)({}, client.receive, client.send)
    assert (client.chunks, client.ended, source.closed) == ([b"1", b"2"], True, True)


async def test_an_idle_stream_sends_keepalives() -> None:
    """While nothing comes, comments are sent."""
    client, source = Client(), Source(b"1", endless=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(response(source), {}, client.receive, client.send)
        with anyio.fail_after(60):
            while KEEP_ALIVE not in client.chunks:
                client.some = anyio.Event()
                await client.some.wait()
        client.gone.set()
    assert client.chunks[:2] == [b"1", KEEP_ALIVE]


async def test_a_disconnected_client_releases_the_source() -> None:
    """The generator is closed, and nothing more is sent."""
    client, source = Client(), Source(b"1", endless=True)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(response(source), {}, client.receive, client.send)
            await client.some.wait()
            client.gone.set()
    assert (source.closed, client.ended) == (True, False)


async def test_a_server_that_stops_ends_the_response() -> None:
    """The stream ends in order, so that the client reconnects with its last id."""
    client, source, closing = Client(), Source(b"1", endless=True), anyio.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(response(source, closing), {}, client.receive, client.send)
            await client.some.wait()
            closing.set()
    assert (source.closed, client.ended) == (True, True)
