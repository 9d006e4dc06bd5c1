"""Server-sent events: encoding, signs of life, and what happens when the client goes away or the server stops."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectSendStream
from starlette.types import Receive, Scope, Send

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = b": keep-alive\n\n"


def encode(data: Any, *, event: str | None = None, id: str | None = None) -> bytes:
    """One event. JSON has no line breaks of its own, so the data is always one line."""
    head = (f"id: {id}\n" if id else "") + (f"event: {event}\n" if event else "")
    body = data.encode() if isinstance(data, str) else msgspec.json.encode(data)
    return head.encode() + b"data: " + body + b"\n\n"


class EventStream:
    """A response that sends what a generator yields. A client that leaves ends the generator, and nothing else."""

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        *,
        closing: anyio.Event,
        headers: Mapping[str, str],
        keep_alive: float = KEEP_ALIVE_SECONDS,
    ) -> None:
        self._chunks = chunks
        self._closing = closing
        self._keep_alive = keep_alive
        fixed = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}
        self._headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in {**fixed, "x-accel-buffering": "no", **headers}.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it. When the server stops the stream just ends; the client comes back with its last id."""
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        gone = False

        async def until_gone() -> None:
            nonlocal gone
            while (await receive())["type"] != "http.disconnect":
                pass
            gone = True
            group.cancel_scope.cancel()

        async def until_closing() -> None:
            await self._closing.wait()
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(until_gone)
            group.start_soon(until_closing)
            await self._pump(send)
            group.cancel_scope.cancel()
        if not gone:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, send: Send) -> None:
        inlet, outlet = anyio.create_memory_object_stream[bytes](16)
        async with anyio.create_task_group() as group, outlet:
            group.start_soon(self._produce, inlet)
            while True:
                chunk = KEEP_ALIVE
                with anyio.move_on_after(self._keep_alive):
                    try:
                        chunk = await outlet.receive()
                    except anyio.EndOfStream:
                        return
                await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _produce(self, inlet: MemoryObjectSendStream[bytes]) -> None:
        async with inlet, aclosing(self._chunks) as chunks:
            async for chunk in chunks:
                await inlet.send(chunk)
