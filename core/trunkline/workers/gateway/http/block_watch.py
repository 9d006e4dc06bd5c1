"""Watches the block that a response is about: the response ends when its reader may not read the block any more."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import anyio
from starlette.requests import HTTPConnection

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline_bus import background_tasks

T = TypeVar("T")


def until_lost(connection: HTTPConnection, block: str) -> Callable[[], Awaitable[None]]:
    """Return a function that returns as soon as the sender of a request may not read a block any more."""
    return partial(services_of(connection).access.wait_until_lost, sender_of(connection).identity, block)


async def while_readable(connection: HTTPConnection, block: str, work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of ``work``. As soon as the sender may not read the block any more, ``work`` is cancelled and
    the request is refused with ``not_found``, as it would be if it came now.
    """
    async with background_tasks() as tasks:
        tasks.start_soon(_cancel_after, until_lost(connection, block), tasks.cancel_scope)
        return await work()
    await services_of(connection).access.require(sender_of(connection).identity, TokenScope.READ, block)
    raise refusal(ErrorCode.NOT_FOUND)


async def _cancel_after(lost: Callable[[], Awaitable[None]], running: anyio.CancelScope) -> None:
    await lost()
    running.cancel()
