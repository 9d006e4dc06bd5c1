"""A wire between one process and the server, which can be cut: a relay on loopback. It knows not what it carries."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream

LOST = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


class Wire:
    """Relays to ``target`` (``nats://host:port``); ``url`` is the address to use in its place."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 4222
        self._calls: set[anyio.CancelScope] = set()
        self.url = ""

    @asynccontextmanager
    async def laid(self) -> AsyncIterator["Wire"]:
        """Relay while the block runs."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with listener, anyio.create_task_group() as tasks:
            self.url = f"nats://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
            tasks.start_soon(listener.serve, self._call)
            yield self
            tasks.cancel_scope.cancel()

    def cut(self) -> None:
        """Break every connection that there is; new ones go through."""
        for call in tuple(self._calls):
            call.cancel()

    async def _call(self, near: SocketStream) -> None:
        with anyio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                async with (
                    near,
                    await anyio.connect_tcp(self._host, self._port) as far,
                    anyio.create_task_group() as tasks,
                ):
                    tasks.start_soon(_carry, near, far, tasks.cancel_scope)
                    tasks.start_soon(_carry, far, near, tasks.cancel_scope)
            except LOST:
                return  # the server is away, as the near side sees now
            finally:
                self._calls.discard(scope)


async def _carry(source: ByteStream, sink: ByteStream, both: anyio.CancelScope) -> None:
    try:
        while True:
            await sink.send(await source.receive())
    except LOST:
        both.cancel()
