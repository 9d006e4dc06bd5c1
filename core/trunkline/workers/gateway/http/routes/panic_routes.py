"""``/api/panic``: the state of the stop, and the button. Releasing stays with the owner's terminal."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.platform_schemas import PanicReport, PanicState
from trunkline.workers.gateway.http.scoped_route import ScopedRoute


async def show(request: Request) -> Response:
    """``GET /api/panic``, for whoever reads: a stopped platform answers nobody, and says so."""
    record = services_of(request).panic.read()
    if record is None:
        return json_response(PanicState(engaged=False))
    return json_response(PanicState(engaged=True, at=record.at, by=record.by))


async def stop(request: Request) -> Response:
    """``POST /api/panic``. It reaches all blocks, so nobody else than the owner stops everything."""
    actor = sender_of(request).require_administrator("stops everything", TokenScope.OPERATE)
    replies = await services_of(request).panic.stop(actor)
    return json_response(PanicReport(engaged=True, stopped=replies.stopped, silent=replies.silent))


ROUTES = (
    ScopedRoute("/api/panic", show, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/panic", stop, methods=["POST"], scope=TokenScope.OPERATE),
)
