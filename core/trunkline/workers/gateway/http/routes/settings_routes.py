"""The settings by section, under ``/api/settings``. Only for the owner."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.settings_schemas import (
    SettingsChanges,
    SettingsSection,
    SettingsSections,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.settings_service import ShownSettings


async def list_sections(request: Request) -> Response:
    """``GET /api/settings``"""
    sender_of(request).require_administrator("sees the settings", TokenScope.OPERATE)
    found = await services_of(request).settings.list_sections()
    return json_response(SettingsSections(sections=tuple(_section(one) for one in found)))


async def change(request: Request) -> Response:
    """``PATCH /api/settings/{section}``"""
    actor = sender_of(request).require_administrator("changes the settings")
    changes = await read_json(request, SettingsChanges)
    section = request.path_params["section"]
    return json_response(_section(await services_of(request).settings.change(section, changes.values, actor)))


ROUTES = (
    ScopedRoute("/api/settings", list_sections, methods=["GET"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/settings/{section}", change, methods=["PATCH"], scope=TokenScope.OWNER),
)


def _section(one: ShownSettings) -> SettingsSection:
    return SettingsSection(
        id=one.form.id,
        owner=one.form.owner,
        schema=one.form.schema,
        values=dict(one.values),
        secrets=dict(one.secrets),
        locked=dict(one.locked),
        restart_needed=one.restart_needed,
    )
