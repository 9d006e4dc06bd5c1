"""Watches the client of a request: the work for it ends when the client disconnects."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from trunkline_bus import background_tasks

T = TypeVar("T")


async def until_gone(request: Request, work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of ``work``, for a request whose body has been read. Raises ClientDisconnect if the client
    disconnects first; ``work`` is then cancelled.
    """
    results: list[T] = []
    async with background_tasks() as tasks:
        tasks.start_soon(cancel_when_gone, request.receive, tasks.cancel_scope)
        results.append(await work())
    if not results:
        raise ClientDisconnect
    return results[0]


async def cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel the scope when the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
