"""BlockGuard: lets requests to a server of one block in, and ends them as soon as they may not continue.

A command that serves a block over HTTP, such as ``trunkline mcp serve``, runs without a gateway. Its requests pass the
same checks as those of the gateway: host, origin, credential (ADR 78), and the policies that share the block (ADR 79).
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec
from opentelemetry import trace

from trunkline.contracts.actors import OWNER
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.home.paths import Home
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.runtime.auth.token_registry import TokenRegistry
from trunkline.runtime.block_access import BlockAccess
from trunkline.runtime.http.auth import HttpAuth
from trunkline_bus import Bus, Refusal, background_tasks

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)
tracer = trace.get_tracer("trunkline.block_guard")

T = TypeVar("T")

LOOPBACK = "127.0.0.1"

STATUS = {
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.ENGINE_UNAVAILABLE: 503,
    ErrorCode.STORAGE_FAILURE: 503,
}

OWN_POLICIES = (
    "A policy bounds what agents do for you. The agent that serves you here acts under its own name, for which this "
    "policy does not count, so you are not served. Ask the owner."
)


class BlockGuard:
    """Admits requests to an application on this machine that serves one block.

    Guarantees: a request reaches the application only with one credential that counts, of somebody who may read the
    block, and never from a page of another origin. It ends when the credential does, or when the block is no longer
    shared.

    Not guaranteed: that what a request does is permitted. Pass its jobs to ``run`` with the scope that they need, and
    bound its calls by ``Identity.permissions_in``.
    """

    def __init__(self, auth: HttpAuth, access: BlockAccess, block: str) -> None:
        self._auth = auth
        self._access = access
        self._block = block

    @staticmethod
    def identity_of(scope: Mapping[str, Any]) -> Identity:
        """Return the identity of a request that was let in, by the request's ASGI scope. Raises KeyError for the scope
        of a request that did not pass ``protect``."""
        from trunkline.runtime.http.auth_middleware import IDENTITY

        identity: Identity = scope[IDENTITY]
        return identity

    def protect(self, app: "ASGIApp") -> "ASGIApp":
        """Return the application behind these checks. Raises nothing."""
        from trunkline.runtime.http.auth_middleware import AuthMiddleware

        checked = AuthMiddleware(
            partial(self._admit, app), auth=self._auth, refuse=_refusal, tracer=tracer, host=LOOPBACK
        )

        async def entrance(scope: "Scope", receive: "Receive", send: "Send") -> None:
            await (app if scope["type"] == "lifespan" else checked)(scope, receive, send)

        return entrance

    async def run(self, identity: Identity, action: TokenScope, job: Callable[[], Awaitable[T]]) -> T:
        """Run a job for an identity; cancel it as soon as the identity may not do this in the block any more.

        Raises:
            Refusal: ``unauthorized`` if the credential has ended; ``not_found`` for a block that the identity may not
                read, ``forbidden`` for another action; ``storage_failure`` while the policies cannot be read.
        """
        await self._require(identity, action)
        async with background_tasks() as tasks:
            ended = self._auth.ended(identity)
            lost = partial(self._access.wait_until_lost, identity, self._block, action)
            tasks.start_soon(_cancel_after, ended.wait, tasks.cancel_scope)
            tasks.start_soon(_cancel_after, lost, tasks.cancel_scope)
            return await job()
        if not ended.is_set():
            await self._require(identity, action)
        raise Refusal(ErrorCode.UNAUTHORIZED, FIXED_SENTENCES[ErrorCode.UNAUTHORIZED])

    async def _require(self, identity: Identity, action: TokenScope) -> None:
        """Return if an identity may do this. Calls are made in the name of an agent, so somebody for whom a policy
        bounds what agents do is refused, as for a message into a turn of the owner.
        """
        await self._access.require(identity, action, self._block)
        if not await self._access.may_steer(identity.id, OWNER):
            raise Refusal(ErrorCode.FORBIDDEN, OWN_POLICIES)

    async def _admit(self, app: "ASGIApp", scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request to the application while its sender may read the block."""
        response = _TrackedSend(send)
        job = partial(app, scope, receive, response.send)
        try:
            await self.run(self.identity_of(scope), TokenScope.READ, job)
        except Refusal as refused:
            if not response.has_begun:
                await _refused(ErrorCode(refused.code), refused.message)(scope, receive, send)
            elif not response.is_complete:
                await send({"type": "http.response.body", "body": b"", "more_body": False})


class _TrackedSend:
    """Sends a response, and knows how far it is."""

    def __init__(self, send: "Send") -> None:
        self._send = send
        self.has_begun = False
        self.is_complete = False

    async def send(self, message: "Message") -> None:
        self.has_begun = True
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.is_complete = True
        await self._send(message)


@asynccontextmanager
async def open_block_guard(bus: Bus, home: Path, token: str, block: str) -> AsyncIterator[BlockGuard]:
    """Yield the guard of a block, which accepts the token of the home and the home's access tokens.

    Without the key of the access tokens only the token of the home counts: a process that may not read the key could
    not read the tokens either, and would not notice a revocation.
    """
    key = TokenKey(Home.at(home).token_key)
    tokens = TokenRegistry(bus, key) if key.file.exists() else None
    auth, access = HttpAuth(token, (), tokens), BlockAccess(bus)
    if tokens is None:
        log.warning("access tokens do not count here, because there is no %s", key.file)
        yield BlockGuard(auth, access, block)
        return
    await access.open()
    try:
        async with background_tasks() as tasks:
            tasks.start_soon(auth.run)
            yield BlockGuard(auth, access, block)
    finally:
        access.close()


async def _cancel_after(wait: Callable[[], Awaitable[object]], running: anyio.CancelScope) -> None:
    await wait()
    running.cancel()


def _refusal(code: ErrorCode, path: str, why: str) -> "Response":
    """Return the response to a request that reaches no handler. No proxy is meant to be in front of such a server, so
    it gives no advice about one.
    """
    return _refused(code, FIXED_SENTENCES[code])


def _refused(code: ErrorCode, message: str) -> "Response":
    from starlette.responses import Response

    headers = {"www-authenticate": "Bearer"} if code is ErrorCode.UNAUTHORIZED else None
    body = msgspec.json.encode({"code": code, "message": message})
    return Response(body, STATUS.get(code, 500), headers=headers, media_type="application/json")
