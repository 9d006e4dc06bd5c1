"""Pairing, signing out, and who is signed in. The session of a browser is an access token in a cookie."""

import ipaddress
from typing import Literal, cast

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.tokens import TokenKind
from trunkline.contracts.gateway.access import OWNER, Identity
from trunkline.errors import ErrorCode
from trunkline.runtime.http.auth_middleware import IDENTITY
from trunkline.workers.gateway.errors import error_code
from trunkline.workers.gateway.http.app_state import services_of
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.responses import ShieldedResponse, json_response
from trunkline.workers.gateway.http.routes.session_cookie import set_session_cookie
from trunkline.workers.gateway.http.schemas.auth_schemas import Me, PairReply, PairRequest, SignedOut
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline_bus import Refusal

PAIR_PATH = "/api/pair"
"""The path that needs no credential: the code is one."""

FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""Headers that a proxy adds. A request with one of them comes from elsewhere, whatever address connects."""


async def pair(request: Request) -> Response:
    """``POST /api/pair``"""
    body = await read_json(request, PairRequest)
    auth = services_of(request).auth
    kind: TokenKind = "session" if body.kind == "cookie" else "bearer"
    new = await auth.pairings.complete(body.code, kind, label=body.label[:100], is_local=_is_local(request))
    record = new.record
    reply = PairReply(
        identity=record.identity,
        scope=record.scope,
        expires=record.expires,
        token=new.text if kind == "bearer" else None,
    )
    response = json_response(reply)
    if kind == "session":
        set_session_cookie(request, response, new)
    return response


async def get_me(request: Request) -> Response:
    """``GET /api/me``"""
    identity, auth = cast(Identity, request.scope[IDENTITY]), services_of(request).auth
    record = auth.registry.record(identity.token_id) if identity.token_id else None
    presented = request.cookies.get(auth.registry.session_cookie, "")
    renewed = await auth.tokens.renewed(identity.token_id, presented) if record is not None else None
    record = renewed.record if renewed is not None else record
    if record is not None and record.paired:
        record = await auth.tokens.prolonged(record.id) or record
    other: Literal["home", "plugin"] = "home" if identity == OWNER else "plugin"
    me = Me(
        id=identity.id,
        type=identity.type,
        display_name=await _display_name(request, identity),
        scope=identity.scope or "",
        kind=record.kind if record is not None else other,
        expires=record.expires if record is not None else None,
        blocks=identity.blocks,
    )
    response = json_response(me)
    if renewed is not None:
        set_session_cookie(request, response, renewed)
    return response


async def sign_out(request: Request) -> ShieldedResponse:
    """``POST /api/sign-out``"""

    async def work() -> Response:
        identity, auth = cast(Identity, request.scope[IDENTITY]), services_of(request).auth
        name = auth.registry.session_cookie
        if identity.token_id:
            await auth.sign_out(identity.token_id)
        response = json_response(SignedOut(signed_out=bool(identity.token_id)))
        response.delete_cookie(name, path="/", httponly=True, samesite="strict")
        return response

    return ShieldedResponse(work)


ROUTES = (
    ScopedRoute(PAIR_PATH, pair, methods=["POST"], scope=None),
    ScopedRoute("/api/me", get_me, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/sign-out", sign_out, methods=["POST"], scope=TokenScope.READ),
)


async def _display_name(request: Request, identity: Identity) -> str:
    """Return the name of an identity; its id for one of a plugin, which has no record."""
    try:
        return (await services_of(request).auth.identities.get(identity.id)).display_name
    except Refusal as error:
        if error_code(error.code) is not ErrorCode.NOT_FOUND:
            raise
        return identity.id


def _is_local(request: Request) -> bool:
    """Report whether a request comes from this machine and not through a proxy."""
    if any(name in request.headers for name in FORWARDED) or request.client is None:
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
