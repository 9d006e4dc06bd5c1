"""``GET /api/plugins``: the plugins of this platform, and what is wrong with them. Only for the owner."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.plugins.manifest import PluginManifest
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.platform_schemas import (
    PluginItem,
    PluginItems,
    PluginProblem,
    PluginRequests,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute


async def list_plugins(request: Request) -> Response:
    """``GET /api/plugins``"""
    sender_of(request).require_administrator("sees the plugins", TokenScope.OPERATE)
    report = services_of(request).plugins.report
    items = [
        PluginItem(
            owner=one.owner,
            name=one.name,
            version=one.version,
            status=one.status,
            reason=one.reason,
            hint=one.hint,
            hooks=one.hooks,
            asks=_requests(one.manifest),
        )
        for one in report.plugins
    ]
    problems = [PluginProblem(owner=one.owner, hook=one.hook, reason=one.reason) for one in report.troubles]
    return json_response(PluginItems(plugins=tuple(items), problems=tuple(problems), missing=report.missing))


def _requests(asks: PluginManifest | None) -> PluginRequests | None:
    if asks is None:
        return None
    return PluginRequests(**{name: getattr(asks, name) for name in PluginRequests.__struct_fields__})


ROUTES = (ScopedRoute("/api/plugins", list_plugins, methods=["GET"], scope=TokenScope.OPERATE),)
