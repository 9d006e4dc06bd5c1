"""The first steps, under ``/api/setup``: model vendors, and model servers on this machine. Only for the owner."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.runtime.model_servers import ModelServer
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.setup_schemas import (
    ModelServerItem,
    ModelServers,
    SetupChoices,
    VendorField,
    VendorItem,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.setup_service import SetupService, VendorNeeds


async def choices(request: Request) -> Response:
    """``GET /api/setup``"""
    sender_of(request).require_administrator("sets up models", TokenScope.OPERATE)
    setup = services_of(request).setup
    return json_response(
        SetupChoices(
            vendors=tuple(_vendor(one) for one in setup.vendors()),
            addresses=tuple(one.url for one in setup.server_addresses()),
        )
    )


async def find_servers(request: Request) -> Response:
    """``POST /api/setup/servers``"""
    sender_of(request).require_administrator("looks for model servers")
    setup = services_of(request).setup
    found = await setup.find_servers()
    return json_response(ModelServers(servers=tuple(_server(setup, one) for one in found)))


ROUTES = (
    ScopedRoute("/api/setup", choices, methods=["GET"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/setup/servers", find_servers, methods=["POST"], scope=TokenScope.OWNER),
)


def _vendor(one: VendorNeeds) -> VendorItem:
    return VendorItem(
        adapter=one.adapter,
        title=one.title,
        keys=dict(one.keys),
        address=one.address,
        fields=tuple(VendorField(name=field.name, question=field.question) for field in one.fields),
        takes_key=one.takes_key,
        listed=one.listed,
    )


def _server(setup: SetupService, one: ModelServer) -> ModelServerItem:
    adapter, address = setup.adapter_of(one)
    return ModelServerItem(name=one.name, adapter=adapter, address=address, models=one.models)
