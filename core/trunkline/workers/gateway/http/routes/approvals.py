"""Approvals under ``/api/approvals``: the pending ones and the grants. Decisions are made under the turn's
path."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.approvals.messages import Approval, ApprovalView, ListApprovals
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import bool_param
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.turn_schemas import ApprovalState, ApprovalStates, GrantStates
from trunkline.workers.gateway.http.scoped_route import ScopedRoute


async def list_approvals(request: Request) -> Response:
    """``GET /api/approvals?block=&settled=``"""
    query = ListApprovals(block=request.query_params.get("block"), settled=bool_param(request, "settled"))
    found = await services_of(request).approvals.list_approvals(query, sender_of(request))
    return json_response(ApprovalStates(approvals=tuple(_state(one) for one in found.approvals)))


async def show(request: Request) -> Response:
    """``GET /api/approvals/{id}``"""
    id, approvals = request.path_params["id"], services_of(request).approvals
    found: ApprovalView = await approvals.get_approval(id, sender_of(request))
    return json_response(_state(found.approval, found.arguments))


async def list_grants(request: Request) -> Response:
    """``GET /api/approvals/granted``"""
    found = await services_of(request).grants.list_grants(sender_of(request))
    return json_response(GrantStates(grants=found.grants))


async def revoke(request: Request) -> Response:
    """``DELETE /api/approvals/granted/{id}``"""
    await services_of(request).grants.revoke(request.path_params["id"], sender_of(request))
    return Response(status_code=204)


ROUTES = (
    ScopedRoute("/api/approvals", list_approvals, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/approvals/granted", list_grants, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/approvals/granted/{id}", revoke, methods=["DELETE"], scope=TokenScope.OWNER),
    ScopedRoute("/api/approvals/{id}", show, methods=["GET"], scope=TokenScope.READ),
)


def _state(approval: Approval, arguments: dict[str, object] | None = None) -> ApprovalState:
    return ApprovalState(
        id=approval.id,
        turn=approval.turn,
        call=approval.call,
        hash=approval.call_hash,
        tool=approval.tool,
        block=approval.block,
        conversation_id=approval.conversation,
        channel=approval.channel,
        question=approval.question,
        detail=approval.detail,
        asked_at=approval.asked_at,
        expires_at=approval.expires_at,
        settled=approval.settled,
        arguments=arguments,
    )
