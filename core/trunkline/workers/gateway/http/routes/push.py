"""Push notices under ``/api/push``: a session asks for them, lists, removes and tries its own."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.tokens import AccessTokenRecord
from trunkline.contracts.push.push_sender import PushTarget
from trunkline.contracts.push.subscriptions import subscription_view
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.push_schemas import (
    NewPushSubscription,
    PushState,
    PushTest,
    RemovedPushSubscription,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

KEY_BYTES, AUTH_BYTES = 65, 16
"""The lengths of a browser's public key and of its secret."""


async def show(request: Request) -> Response:
    """``GET /api/push``"""
    push = services_of(request).push
    records = await push.records(sender_of(request).identity.id)
    key = urlsafe_b64encode(await push.public_key()).rstrip(b"=").decode()
    return json_response(PushState(public_key=key, subscriptions=tuple(map(subscription_view, records))))


async def subscribe(request: Request) -> Response:
    """``POST /api/push``"""
    session = _session_of(request)
    new = await read_json(request, NewPushSubscription)
    target = PushTarget(
        endpoint=new.endpoint,
        p256dh=_decoded(new.keys.p256dh, "p256dh", KEY_BYTES),
        auth=_decoded(new.keys.auth, "auth", AUTH_BYTES),
    )
    record = await services_of(request).push.subscribe(session, target, new.label, new.language)
    return json_response(subscription_view(record), 201)


async def remove(request: Request) -> Response:
    """``DELETE /api/push/{id}``"""
    push = services_of(request).push
    record = await push.find(request.path_params["id"], sender_of(request).identity.id)
    await push.remove(record)
    return json_response(RemovedPushSubscription(id=record.id))


async def send_test(request: Request) -> Response:
    """``POST /api/push/{id}/test``"""
    push = services_of(request).push
    record = await push.find(request.path_params["id"], sender_of(request).identity.id)
    return json_response(PushTest(outcome=await push.test(record)))


ROUTES = (
    ScopedRoute("/api/push", show, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/push", subscribe, methods=["POST"], scope=TokenScope.APPROVE),
    ScopedRoute("/api/push/{id}", remove, methods=["DELETE"], scope=TokenScope.APPROVE),
    ScopedRoute("/api/push/{id}/test", send_test, methods=["POST"], scope=TokenScope.APPROVE),
)


def _session_of(request: Request) -> AccessTokenRecord:
    """Return the session of a request. Refused for another credential: a notice is for a browser that is signed in, and
    ends with its session.
    """
    identity = sender_of(request).identity
    record = services_of(request).auth.registry.record(identity.token_id) if identity.token_id else None
    if record is None or record.kind != "session":
        raise InvalidField((), "Only a browser that is signed in asks for notices: trunkline open")
    return record


def _decoded(text: str, field: str, length: int) -> bytes:
    try:
        content = urlsafe_b64decode(f"{text}==")
    except ValueError:
        content = b""
    if len(content) != length:
        raise InvalidField(("keys", field), f"It is {length} bytes in base64url.")
    return content
