"""With whom a block is shared, under ``/api/blocks/{name}/shares``. Only for the owner."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.policies.messages import UNCONDITIONAL, Policy
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.block_schemas import BlockShare, BlockShareList, ShareRequest
from trunkline.workers.gateway.http.scoped_route import ScopedRoute


async def list_all(request: Request) -> Response:
    """``GET /api/blocks/{name}/shares``"""
    sender_of(request).require_administrator("sees with whom a block is shared")
    block = await _existing_block(request)
    found = await services_of(request).auth.sharing.shared_with(block)
    return json_response(BlockShareList(shared_with=tuple(_share(block, policy) for policy in found)))


async def show(request: Request) -> Response:
    """``GET /api/blocks/{name}/shares/{identity}``"""
    sender_of(request).require_administrator("sees with whom a block is shared")
    block = await _existing_block(request)
    found = await services_of(request).auth.sharing.find(block, request.path_params["identity"])
    return json_response(_share(block, found))


async def share(request: Request) -> Response:
    """``PUT /api/blocks/{name}/shares/{identity}``"""
    actor = sender_of(request).require_administrator("shares blocks")
    command = await read_json(request, ShareRequest)
    block, identity = await _existing_block(request), request.path_params["identity"]
    policy = await services_of(request).auth.sharing.share(block, identity, command.action, actor)
    return json_response(_share(block, policy))


async def unshare(request: Request) -> Response:
    """``DELETE /api/blocks/{name}/shares/{identity}``; the block need not exist any more."""
    actor = sender_of(request).require_administrator("shares blocks")
    name, identity = request.path_params["name"], request.path_params["identity"]
    await services_of(request).auth.sharing.unshare(name, identity, actor)
    return Response(status_code=204)


ROUTES = (
    ScopedRoute("/api/blocks/{name}/shares", list_all, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/blocks/{name}/shares/{identity}", show, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/blocks/{name}/shares/{identity}", share, methods=["PUT"], scope=TokenScope.OWNER),
    ScopedRoute("/api/blocks/{name}/shares/{identity}", unshare, methods=["DELETE"], scope=TokenScope.OWNER),
)


async def _existing_block(request: Request) -> str:
    """Return the name of the block. Refused with ``not_found`` if there is none."""
    name = request.path_params["name"]
    return (await services_of(request).blocks.get_block(name, sender_of(request))).name


def _share(block: str, policy: Policy) -> BlockShare:
    return BlockShare(
        block=block,
        identity=policy.subject,
        action=policy.action,
        policy=policy.id,
        resource=policy.resource,
        is_conditional=policy.conditions != UNCONDITIONAL,
    )
