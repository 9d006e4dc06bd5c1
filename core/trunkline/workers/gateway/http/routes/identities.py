"""The people and programs that the owner knows, under ``/api/identities``. Only for the owner."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.messages import ChangeIdentity, CreateIdentity
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.auth_schemas import IdentityChanges, IdentityStates, NewIdentity
from trunkline.workers.gateway.http.scoped_route import ScopedRoute


async def list_identities(request: Request) -> Response:
    """``GET /api/identities``"""
    sender_of(request).require_administrator("sees who may enter")
    identities = await services_of(request).auth.identities.list_identities()
    return json_response(IdentityStates(identities=identities))


async def create(request: Request) -> Response:
    """``POST /api/identities``"""
    actor = sender_of(request).require_administrator("decides who may enter")
    new = await read_json(request, NewIdentity)
    command = CreateIdentity(id=new.id, identity_type=new.type, display_name=new.display_name, actor=actor)
    return json_response(await services_of(request).auth.identities.create(command), 201)


async def change(request: Request) -> Response:
    """``PATCH /api/identities/{id}``"""
    actor = sender_of(request).require_administrator("decides who may enter")
    changes = await read_json(request, IdentityChanges)
    command = ChangeIdentity(
        id=request.path_params["id"], status=changes.status, display_name=changes.display_name, actor=actor
    )
    return json_response(await services_of(request).auth.change_identity(command))


ROUTES = (
    ScopedRoute("/api/identities", list_identities, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/identities", create, methods=["POST"], scope=TokenScope.OWNER),
    ScopedRoute("/api/identities/{id}", change, methods=["PATCH"], scope=TokenScope.OWNER),
)
