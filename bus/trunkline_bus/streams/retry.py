"""Requests to JetStream that survive a restart of the server, a lost connection or a missing reply.

Use this module only for requests that may be repeated: a query, or an append that the server recognises by its id.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from trunkline_bus.backoff import Backoff
from trunkline_bus.connection.nats_connection import ConnectionLost, NatsConnection
from trunkline_bus.errors import BusError, CallTimeout, NoResponders, StreamUnavailable
from trunkline_bus.streams.jetstream_protocol import NOT_READY


class JetStreamNotReady(BusError):
    """JetStream is not ready yet (no leader, starting up). Internal: always retried."""


async def request_with_retry(
    link: NatsConnection, operation: str, body: Any = None, *, timeout: float = 5.0
) -> dict[str, Any]:
    """Call the JetStream API, for instance ``request_with_retry(link, "STREAM.INFO.x")``. The reply may have an
    ``error``.

    Repeats the request after a lost connection or a missing reply until ``timeout`` seconds have passed. Use it only
    for requests that may be repeated. Raises ``StreamUnavailable`` or ``ConnectionFailed``.
    """
    subject = f"$JS.API.{operation}"
    data = b"" if body is None else msgspec.json.encode(body)

    async def attempt(remaining: float) -> dict[str, Any]:
        msg = await link.request(subject, data, timeout=remaining, fragile=True)
        reply: dict[str, Any] = msgspec.json.decode(msg.data)
        if reply.get("error", {}).get("err_code") in NOT_READY:
            raise JetStreamNotReady(str(reply["error"].get("description")))
        return reply

    answer: dict[str, Any] = await retry_until_done(link, attempt, timeout=timeout, what=subject)
    return answer


async def retry_until_done(
    link: NatsConnection,
    attempt: Callable[[float], Awaitable[Any]],
    *,
    timeout: float,
    what: str,
    attempt_timeout: float = 3.0,
) -> Any:
    """Run ``attempt(seconds)`` until it returns. Retry after failures that a restart of the server can cause.

    One attempt waits at most ``attempt_timeout`` seconds. Raises ``StreamUnavailable`` after ``timeout`` seconds, or
    ``ConnectionFailed`` if the connection was down until then.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    backoff = Backoff(0.01, 0.25)
    while True:
        await link.wait_connected(max(0.001, deadline - loop.time()))
        remaining = deadline - loop.time()
        try:
            return await attempt(max(0.001, min(remaining, attempt_timeout)))
        except (NoResponders, CallTimeout, ConnectionLost, JetStreamNotReady) as error:
            if loop.time() + backoff.delay >= deadline:
                raise StreamUnavailable(f"{what}: no answer in {timeout:g} s ({error})") from error
        await backoff.sleep()


@asynccontextmanager
async def append_slot(link: NatsConnection, timeout: float, what: str) -> AsyncIterator[float]:
    """Acquire a slot for an unacknowledged append, and yield the seconds that remain of ``timeout``.

    Raises ``StreamUnavailable`` if no slot becomes free in time.
    """
    began = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(timeout if link.append_slots.locked() else None):
            await link.append_slots.acquire()
    except TimeoutError as error:
        raise StreamUnavailable(f"{what}: too many appends are waiting, no turn in {timeout:g} s") from error
    try:
        yield timeout - (asyncio.get_running_loop().time() - began)
    finally:
        link.append_slots.release()
