"""Access tokens under ``/api/tokens``: list, issue and revoke. Only for the owner."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.messages import IssueToken, RevokeToken
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.auth.token_service import view
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.responses import ShieldedResponse, json_response
from trunkline.workers.gateway.http.schemas.auth_schemas import (
    IssuedToken,
    RevokedToken,
    TokenRequest,
    TokenStates,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute


async def list_tokens(request: Request) -> Response:
    """``GET /api/tokens?identity=``"""
    sender_of(request).require_administrator("sees the access tokens")
    identity = request.query_params.get("identity") or None
    return json_response(TokenStates(tokens=await services_of(request).auth.tokens.list_tokens(identity)))


async def issue(request: Request) -> Response:
    """``POST /api/tokens``: the only answer with the text of the token, which nothing may store."""
    actor = sender_of(request).require_administrator("issues access tokens")
    new = await read_json(request, TokenRequest)
    command = IssueToken(
        identity=new.identity,
        scope=new.scope,
        label=new.label,
        expires=new.expires,
        blocks=new.blocks,
        actor=actor,
    )
    issued = await services_of(request).auth.tokens.issue(command)
    return json_response(IssuedToken(token=view(issued.record), text=issued.text), 201)


async def revoke(request: Request) -> ShieldedResponse:
    """``DELETE /api/tokens/{id}``; the token may be that of the request."""

    async def work() -> Response:
        actor = sender_of(request).require_administrator("revokes access tokens")
        id, auth = request.path_params["id"], services_of(request).auth
        if id not in {
            one.id for one in await auth.tokens.records()
        }:  # a command may shorten an id, a program not
            raise refusal(ErrorCode.NOT_FOUND)
        revoked = await auth.revoke_token(RevokeToken(id=id, actor=actor))
        return json_response(RevokedToken(id=id, turns=revoked.turns))

    return ShieldedResponse(work)


ROUTES = (
    ScopedRoute("/api/tokens", list_tokens, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/tokens", issue, methods=["POST"], scope=TokenScope.OWNER),
    ScopedRoute("/api/tokens/{id}", revoke, methods=["DELETE"], scope=TokenScope.OWNER),
)
