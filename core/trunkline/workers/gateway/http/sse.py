"""Server-sent events: encoding, keep-alive comments, and the end when the client leaves or the server
stops."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup
from starlette.types import Receive, Scope, Send

KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = b": keep-alive\n\n"


def encode(data: Any, *, event: str | None = None, id: str | None = None) -> bytes:
    """Return one event. JSON contains no line breaks, so the data is always one line."""
    head = (f"id: {id}\n" if id else "") + (f"event: {event}\n" if event else "")
    body = data.encode() if isinstance(data, str) else msgspec.json.encode(data)
    return head.encode() + b"data: " + body + b"\n\n"


class EventStream:
    """A response that sends what a generator yields. When the client disconnects, only the generator ends.

    ``beside`` yields further events to send at the same time. The response also ends when ``until`` returns.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        *,
        closing: anyio.Event,
        headers: Mapping[str, str],
        keep_alive: float = KEEP_ALIVE_SECONDS,
        beside: AsyncGenerator[bytes, None] | None = None,
        until: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._chunks = chunks
        self._beside = beside
        self._until = until
        self._closing = closing
        self._keep_alive = keep_alive
        fixed = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}
        self._headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in {**fixed, "x-accel-buffering": "no", **headers}.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all chunks. When the server stops, the stream ends; the client reconnects with its last event
        id."""
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        sender = _ChunkSender(send)
        async with anyio.create_task_group() as group:
            group.start_soon(self._until_gone, receive, sender, group)
            group.start_soon(self._until_closing, sender, group)
            if self._until is not None:
                group.start_soon(_cancel_after, self._until, group)
            if self._beside is not None:
                group.start_soon(_send_all, self._beside, sender)
            await _send_all(self._chunks, sender)
            group.cancel_scope.cancel()
        if not sender.disconnected:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _until_gone(self, receive: Receive, sender: "_ChunkSender", group: TaskGroup) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        sender.disconnected = True
        group.cancel_scope.cancel()

    async def _until_closing(self, sender: "_ChunkSender", group: TaskGroup) -> None:
        """End the stream when the server stops, and send keep-alive comments until then."""
        while not self._closing.is_set():
            with anyio.move_on_after(self._keep_alive - sender.idle):
                await self._closing.wait()
            if sender.idle >= self._keep_alive:
                group.start_soon(sender.send, KEEP_ALIVE)
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


async def _cancel_after(until: Callable[[], Awaitable[None]], group: TaskGroup) -> None:
    await until()
    group.cancel_scope.cancel()


async def _send_all(chunks: AsyncGenerator[bytes, None], sender: "_ChunkSender") -> None:
    async with aclosing(chunks):
        async for chunk in chunks:
            await sender.send(chunk)


class _ChunkSender:
    """Sends chunks to the client one after the other."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._order = anyio.Lock(fast_acquire=True)
        self._used = anyio.current_time()
        self.disconnected = False

    @property
    def idle(self) -> float:
        """Seconds since the last chunk was passed to ``send``."""
        return anyio.current_time() - self._used

    async def send(self, chunk: bytes) -> None:
        self._used = anyio.current_time()
        async with self._order:
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
