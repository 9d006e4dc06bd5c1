"""Passkeys under ``/api/passkeys``: a session registers, lists and removes those of its identity, and a page without a
session signs in with one.
"""

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.passkeys import PasskeyRecord, passkey_view
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.tokens import AccessTokenRecord
from trunkline.contracts.gateway.access import Identity
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.auth.passkey_ceremonies import PasskeyRequest
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.responses import ShieldedResponse, json_response
from trunkline.workers.gateway.http.routes.session_cookie import set_session_cookie
from trunkline.workers.gateway.http.schemas.auth_schemas import PairReply
from trunkline.workers.gateway.http.schemas.passkey_schemas import (
    NewPasskeyRequest,
    PasskeyOptions,
    PasskeySignIn,
    PasskeyStates,
    RemovedPasskey,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

SIGN_IN_PATH = "/api/passkeys/sign-in"
"""The path that needs no credential: the passkey is one. So does the path of its options."""


async def list_passkeys(request: Request) -> Response:
    """``GET /api/passkeys``: of the passkeys of the caller, those that permit no more than its own credential."""
    own, auth = sender_of(request).identity, services_of(request).auth
    current = auth.registry.record(own.token_id)
    states = PasskeyStates(
        passkeys=tuple(passkey_view(one) for one in await auth.passkeys.records(own.id) if _covers(own, one)),
        current=current.passkey if current is not None else "",
    )
    return json_response(states)


async def registration_options(request: Request) -> Response:
    """``POST /api/passkeys/options``"""
    session, ceremonies = _session_of(request), services_of(request).auth.ceremonies
    return json_response(
        PasskeyOptions(public_key=await ceremonies.registration_options(session, _origin_of(request)))
    )


async def register(request: Request) -> ShieldedResponse:
    """``POST /api/passkeys``"""
    session, origin = _session_of(request), _origin_of(request)
    new = await read_json(request, NewPasskeyRequest)
    wanted = PasskeyRequest(
        session=session, challenge=new.challenge, response=new.credential, label=new.label, scope=new.scope
    )

    async def work() -> Response:
        record = await services_of(request).auth.ceremonies.register(wanted, origin)
        return json_response(passkey_view(record), 201)

    return ShieldedResponse(work)


async def remove(request: Request) -> ShieldedResponse:
    """``DELETE /api/passkeys/{id}``; it may be the one that opened the session of the request."""

    async def work() -> Response:
        sender, auth = sender_of(request), services_of(request).auth
        record = await auth.passkeys.find(request.path_params["id"])
        if record.identity != sender.identity.id:
            raise refusal(ErrorCode.NOT_FOUND)
        if not _covers(sender.identity, record):
            raise refusal(ErrorCode.FORBIDDEN)
        removed = await auth.remove_passkeys([record], sender.identity.id)
        return json_response(
            RemovedPasskey(passkeys=removed.passkeys, tokens=removed.tokens, turns=removed.turns)
        )

    return ShieldedResponse(work)


async def sign_in_options(request: Request) -> Response:
    """``POST /api/passkeys/sign-in/options``"""
    ceremonies = services_of(request).auth.ceremonies
    return json_response(PasskeyOptions(public_key=ceremonies.sign_in_options(_origin_of(request))))


async def sign_in(request: Request) -> Response:
    """``POST /api/passkeys/sign-in``"""
    body = await read_json(request, PasskeySignIn)
    ceremonies = services_of(request).auth.ceremonies
    new = await ceremonies.sign_in(body.challenge, body.credential, _origin_of(request))
    record = new.record
    response = json_response(PairReply(identity=record.identity, scope=record.scope, expires=record.expires))
    set_session_cookie(request, response, new)
    return response


ROUTES = (
    ScopedRoute("/api/passkeys", list_passkeys, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/passkeys/options", registration_options, methods=["POST"], scope=TokenScope.READ),
    ScopedRoute("/api/passkeys", register, methods=["POST"], scope=TokenScope.READ),
    ScopedRoute(f"{SIGN_IN_PATH}/options", sign_in_options, methods=["POST"], scope=None),
    ScopedRoute(SIGN_IN_PATH, sign_in, methods=["POST"], scope=None),
    ScopedRoute("/api/passkeys/{id}", remove, methods=["DELETE"], scope=TokenScope.READ),
)


def _session_of(request: Request) -> AccessTokenRecord:
    """Return the session of a request. Refused for another credential: a token that a program keeps, or that expires
    soon, must not become a way in that stays.
    """
    identity = sender_of(request).identity
    record = services_of(request).auth.registry.record(identity.token_id) if identity.token_id else None
    if record is None or record.kind != "session":
        raise InvalidField((), "Only a browser that is signed in registers a passkey: trunkline open")
    return record


def _origin_of(request: Request) -> str:
    """Return the origin of the page, which is one of the gateway's own names (``AuthMiddleware``). Refused where
    browsers have no passkeys: without TLS, unless the host is localhost, and at an address of numbers.
    """
    origin = request.headers.get("origin", "")
    parts = urlsplit(origin)
    host = parts.hostname or ""
    is_local = host == "localhost" or host.endswith(".localhost")
    if _is_address(host) or not (parts.scheme == "https" or (parts.scheme == "http" and is_local)):
        raise InvalidField((), "Passkeys work at http://localhost and at a name with https.")
    return origin


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _covers(identity: Identity, record: PasskeyRecord) -> bool:
    """Report whether a caller may do all that a passkey permits. With less nobody ends the sessions of others."""
    if not identity.may(record.scope):
        return False
    return identity.blocks is None or (
        record.blocks is not None and set(record.blocks) <= set(identity.blocks)
    )
