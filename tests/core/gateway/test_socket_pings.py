"""A peer at ``/ws`` that has gone without a word: it answers no ping (CC-T5)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest
from anyio.abc import SocketStream
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

from tests.support.socket_client import NOW
from trunkline.testing.platform import Platform, platform
from trunkline.workers.gateway.worker import GatewayWorker

from .conftest import until

pytestmark = pytest.mark.anyio

INTERVAL = 0.5


@pytest.fixture(scope="module")
async def running(anyio_backend: str) -> AsyncIterator[Platform]:
    config = {"gateway.ping_interval": INTERVAL}
    async with platform(workers=("gateway", "memory"), config=config) as one:
        yield one


class SilentPeer:
    """A bare connection after the handshake: it reads frames, and sends nothing but what a test tells it to."""

    def __init__(self, stream: SocketStream, protocol: ClientProtocol) -> None:
        self._stream = stream
        self._protocol = protocol

    async def handshake(self, token: str) -> None:
        request = self._protocol.connect()
        request.headers["Authorization"] = f"Bearer {token}"
        self._protocol.send_request(request)
        await self.flush()
        response = (await self.receive())[0]
        assert isinstance(response, Response) and response.status_code == 101

    async def flush(self) -> None:
        """Send what the protocol has to send, which includes the answers to pings."""
        for data in self._protocol.data_to_send():
            await self._stream.send(data)

    async def send(self, envelope: dict[str, Any]) -> None:
        self._protocol.send_text(msgspec.json.encode(envelope))
        await self.flush()

    async def receive(self) -> list[object]:
        """Return what has arrived; the answers to pings are not sent."""
        self._protocol.receive_data(await self._stream.receive())
        return list(self._protocol.events_received())


@asynccontextmanager
async def silent_peer(running: Platform) -> AsyncIterator[SilentPeer]:
    host, port = running.url.removeprefix("http://").split(":")
    protocol = ClientProtocol(parse_uri(running.url.replace("http", "ws", 1) + "/ws"))
    async with await anyio.connect_tcp(host, int(port)) as stream:
        peer = SilentPeer(stream, protocol)
        await peer.handshake(running.token)
        yield peer


async def test_a_peer_that_answers_no_ping_is_dropped(running: Platform) -> None:
    """It gets a ping, then a close with 1011, the connection ends, and the gateway forgets it."""
    gateway = running.instance.workers["gateway"]
    assert isinstance(gateway, GatewayWorker)

    async def counted(number: int) -> bool:
        return gateway.sockets.count("owner") == number

    frames: list[Frame] = []
    async with silent_peer(running) as peer:
        await until(lambda: counted(1))
        with anyio.fail_after(60), pytest.raises(anyio.EndOfStream):
            while True:
                frames += [one for one in await peer.receive() if isinstance(one, Frame)]
        await until(lambda: counted(0))
    assert [frame.opcode for frame in frames] == [Opcode.PING, Opcode.CLOSE]
    assert int.from_bytes(frames[-1].data[:2]) == 1011


async def test_a_peer_that_answers_pings_stays(running: Platform) -> None:
    """Silence is no reason to drop a peer: it only answers pings, for several intervals, and is served as before."""
    async with silent_peer(running) as peer:
        pings = 0
        with anyio.fail_after(60):
            while pings < 4:
                frames = [one for one in await peer.receive() if isinstance(one, Frame)]
                assert all(frame.opcode is Opcode.PING for frame in frames)
                pings += len(frames)
                await peer.flush()
        await peer.send({"type": "ping", "id": "1", "timestamp": NOW, "payload": {}})
        with anyio.fail_after(60):
            while not any(
                isinstance(one, Frame) and one.opcode is Opcode.TEXT for one in await peer.receive()
            ):
                await peer.flush()
