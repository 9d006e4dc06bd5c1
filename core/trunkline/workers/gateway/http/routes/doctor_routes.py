"""``GET /api/doctor``: the checks of ``trunkline doctor``. Only for the owner."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.doctor_schemas import DoctorReport
from trunkline.workers.gateway.http.scoped_route import ScopedRoute


async def check(request: Request) -> Response:
    """``GET /api/doctor``"""
    sender_of(request).require_administrator("checks the installation", TokenScope.OPERATE)
    found = await services_of(request).doctor.run()
    return json_response(msgspec.convert(found, DoctorReport, from_attributes=True))


ROUTES = (ScopedRoute("/api/doctor", check, methods=["GET"], scope=TokenScope.OPERATE),)
