"""Compaction of a conversation under ``/api``: a turn of the conversation, as if a person had sent ``/compact``."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.client_message_id import client_id
from trunkline.workers.gateway.http.request_reader import read_optional_json
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.routes.turns import accepted_body
from trunkline.workers.gateway.http.schemas.conversation_schemas import CompactionOptions
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

UNDO = "undo"


async def compact(request: Request) -> Response:
    """``POST /api/conversations/{id}/compact``"""
    options = await read_optional_json(request, CompactionOptions)
    focus, command = " ".join(options.focus.split()), "/rebirth" if options.rebirth else "/compact"
    if focus.casefold() == UNDO:
        raise InvalidField(("focus",), "DELETE withdraws the newest summary.")
    return await _send(request, f"{command} {focus}".strip())


async def undo(request: Request) -> Response:
    """``DELETE /api/conversations/{id}/compact``"""
    return await _send(request, f"/compact {UNDO}")


async def _send(request: Request, text: str) -> Response:
    message = SendMessage(
        content=text, conversation=request.path_params["id"], client_id=client_id(request, {})
    )
    accepted = await services_of(request).messages.send(message, sender_of(request))
    return json_response(accepted_body(accepted), 202)


ROUTES = (
    ScopedRoute("/api/conversations/{id}/compact", compact, methods=["POST"], scope=TokenScope.CHAT),
    ScopedRoute("/api/conversations/{id}/compact", undo, methods=["DELETE"], scope=TokenScope.CHAT),
)
