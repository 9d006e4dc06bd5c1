"""A wire on which the server's acknowledgements of one stream's messages can get lost, and nothing else does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream

LOST = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


class LossyWire:
    """Relays to ``target``; ``url`` is what to use in its place. While ``losing``, acknowledgements of ``stream`` are
    counted in ``lost`` and not passed on."""

    def __init__(self, target: str, stream: str) -> None:
        self._target = urlsplit(target)
        self._ack = f'{{"stream":"{stream}"'.encode()
        self.losing = False
        self.lost = 0
        self.url = ""

    @asynccontextmanager
    async def laid(self) -> AsyncIterator["LossyWire"]:
        """Relay while the block runs."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.url = f"nats://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, self._call)
            yield self
            tasks.cancel_scope.cancel()

    async def _call(self, near: SocketStream) -> None:
        try:
            far = await anyio.connect_tcp(self._target.hostname or "127.0.0.1", self._target.port or 4222)
            async with near, far, anyio.create_task_group() as tasks:
                tasks.start_soon(_carry, near, far, tasks.cancel_scope)
                tasks.start_soon(partial(self._bring, far, near, tasks.cancel_scope))
        except LOST:
            return  # the server is away, as the near side sees now

    async def _bring(self, far: SocketStream, near: SocketStream, both: anyio.CancelScope) -> None:
        waiting = b""
        try:
            while True:
                waiting += await far.receive()
                passed, waiting = self._passed(waiting)
                if passed:
                    await near.send(passed)
        except LOST:
            both.cancel()

    def _passed(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the forwarded frames in ``data``, and the incomplete rest."""
        passed, at = bytearray(), 0
        while (line := data.find(b"\r\n", at)) >= 0:
            end = line + 2
            if data[at : at + 4] in (b"MSG ", b"HMSG"):
                size = int(data[at:line].rsplit(b" ", 1)[1])
                end = line + 2 + size + 2
                if len(data) < end:
                    break
                if self.losing and data[line + 2 :].startswith(self._ack):
                    self.lost += 1
                    at = end
                    continue
            passed += data[at:end]
            at = end
        return bytes(passed), data[at:]


async def _carry(source: SocketStream, sink: SocketStream, both: anyio.CancelScope) -> None:
    try:
        while True:
            await sink.send(await source.receive())
    except LOST:
        both.cancel()
