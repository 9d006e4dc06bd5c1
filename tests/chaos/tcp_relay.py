"""A relay on loopback between one process and the servers, which can be cut. It does not interpret its data."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream

LOST = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


class Wire:
    """Relays to ``targets`` (``nats://host:port``, several with commas); ``url`` is what to use in their place."""

    def __init__(self, targets: str) -> None:
        self._targets = tuple(targets.split(","))
        self._calls: set[anyio.CancelScope] = set()
        self.url = ""

    @asynccontextmanager
    async def laid(self) -> AsyncIterator["Wire"]:
        """Relay while the block runs."""
        urls = []
        async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
            for target in self._targets:
                listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
                await stack.enter_async_context(listener)
                urls.append(f"nats://127.0.0.1:{listener.extra(SocketAttribute.local_port)}")
                parts = urlsplit(target)
                call = partial(self._call, parts.hostname or "127.0.0.1", parts.port or 4222)
                tasks.start_soon(listener.serve, call)
            self.url = ",".join(urls)
            yield self
            tasks.cancel_scope.cancel()

    def cut(self) -> None:
        """Break every connection that there is; new ones go through."""
        for call in tuple(self._calls):
            call.cancel()

    async def _call(self, host: str, port: int, near: SocketStream) -> None:
        with anyio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                async with (
                    near,
                    await anyio.connect_tcp(host, port) as far,
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
