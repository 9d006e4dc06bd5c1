"""Turns by id: state, events from any position, cancel, steer, fork and decide."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.messages import CancelTurn, ForkTurn, MessageAccepted, SendMessage, TurnView
from trunkline.contracts.turns.messages import ApprovalDecided
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.approvals import AlreadyDecided, ApprovalWithdrawn
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import app_state_of, sender_of, services_of
from trunkline.workers.gateway.http.client_message_id import client_id
from trunkline.workers.gateway.http.events import usage_count
from trunkline.workers.gateway.http.request_reader import read_json, read_optional_json
from trunkline.workers.gateway.http.responses import (
    conflict_reason,
    error_body,
    error_response,
    json_response,
)
from trunkline.workers.gateway.http.schemas.conversation_schemas import Accepted, NewMessage
from trunkline.workers.gateway.http.schemas.turn_schemas import (
    CancelRequest,
    DecisionRequest,
    ForkRequest,
    TurnDetail,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.http.turn_stream import watch_turn


async def get_turn(request: Request) -> Response:
    """``GET /api/turns/{id}``"""
    turn, messages = request.path_params["id"], services_of(request).messages
    return json_response(_turn(await messages.get_turn(turn, sender_of(request))))


async def get_events(request: Request) -> ASGIApp:
    """``GET /api/turns/{id}/events?from=``"""
    turn, messages = request.path_params["id"], services_of(request).messages
    found = (await messages.find(turn, sender_of(request))).request
    accepted = MessageAccepted(
        block=found.block,
        conversation=found.conversation,
        turn=found.turn,
        message_id=found.message.id,
    )
    return watch_turn(request, accepted)


async def cancel(request: Request) -> Response:
    """``POST /api/turns/{id}/cancel``"""
    turn, parts = request.path_params["id"], app_state_of(request)
    command = await read_optional_json(request, CancelRequest)
    messages, sender = parts.services.messages, sender_of(request)
    await messages.cancel(CancelTurn(turn=turn, mode=command.mode), sender)
    return json_response(_turn(await messages.get_turn(turn, sender)), 202)


async def steer(request: Request) -> Response:
    """``POST /api/turns/{id}/steer``"""
    new = await read_json(request, NewMessage)
    message = SendMessage(
        content=new.content,
        client_id=client_id(request, new.metadata),
        metadata=new.metadata,
        shows=new.shows,
        steer=request.path_params["id"],
    )
    return json_response(
        accepted_body(await services_of(request).messages.send(message, sender_of(request))), 202
    )


async def fork(request: Request) -> Response:
    """``POST /api/turns/{id}/fork``"""
    new = await read_json(request, ForkRequest)
    command = ForkTurn(
        turn=request.path_params["id"], step=new.step, content=new.content, model=new.model,
        client_id=client_id(request, {}),
    )  # fmt: skip
    return json_response(
        accepted_body(await services_of(request).messages.fork(command, sender_of(request))), 202
    )


async def decide(request: Request) -> Response:
    """``POST /api/turns/{id}/calls/{call}/decision``"""
    turn, parts = request.path_params["id"], app_state_of(request)
    decision = await read_json(request, DecisionRequest)
    if decision.allow is None and not decision.answer:
        raise InvalidField(("allow",), "Say allow, true or false, or answer the question.")
    decided = ApprovalDecided(
        turn=turn,
        call=request.path_params["call"],
        call_hash=decision.hash,
        allow=True if decision.allow is None else decision.allow,
        by="",
        scope=decision.scope,
        answer=decision.answer,
    )
    try:
        late = await parts.services.approvals.decide(decided, sender_of(request))
    except ApprovalWithdrawn as gone:
        withdrawn = {"X-Withdrawn": gone.why, "X-Withdrawn-By": quote(gone.by)}
        why = conflict_reason(request, gone)
        return error_response(ErrorCode.CONFLICT, request.url.path, headers=withdrawn, why=why)
    except AlreadyDecided as first:
        late = first
    if late is not None:
        decided_headers = {"X-Decided": late.verdict, "X-Decided-By": quote(late.by)}
        why = conflict_reason(request, late)
        return error_response(ErrorCode.CONFLICT, request.url.path, headers=decided_headers, why=why)
    return json_response(_turn(await parts.services.messages.get_turn(turn, sender_of(request))), 202)


ROUTES = (
    ScopedRoute("/api/turns/{id}", get_turn, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/turns/{id}/events", get_events, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/turns/{id}/cancel", cancel, methods=["POST"], scope=TokenScope.CHAT),
    ScopedRoute("/api/turns/{id}/steer", steer, methods=["POST"], scope=TokenScope.CHAT),
    ScopedRoute("/api/turns/{id}/fork", fork, methods=["POST"], scope=TokenScope.CHAT),
    ScopedRoute("/api/turns/{id}/calls/{call}/decision", decide, methods=["POST"], scope=TokenScope.APPROVE),
)


def accepted_body(taken: MessageAccepted) -> Accepted:
    """Return the body of the answer to a request that became a message."""
    return Accepted(
        turn=taken.turn,
        conversation_id=taken.conversation,
        message_id=taken.message_id,
        otherwise=taken.otherwise,
    )


def _turn(view: TurnView) -> TurnDetail:
    return TurnDetail(
        id=view.turn,
        conversation_id=view.conversation,
        block=view.block,
        status=view.status,
        usage=usage_count(view.usage),
        finish_reason=view.reason,
        message_id=view.message_id,
        error=error_body(view.code) if view.code else None,
    )
