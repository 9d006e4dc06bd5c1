"""The languages of the web app, under ``/api/locales``.

They need no credential, because the page to sign in has a language, too. They are part of installed plugins, like the
files of the app, and contain nothing of the home.
"""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.http.app_state import app_state_of
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.locale_schemas import LocaleItem, LocaleList, LocaleTexts
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

PATH = "/api/locales"


async def list_locales(request: Request) -> Response:
    """``GET /api/locales``"""
    found = app_state_of(request).locales.values()
    items = tuple(LocaleItem(tag=one.tag, name=one.name, version=one.version) for one in found)
    return json_response(LocaleList(locales=items))


async def read_locale(request: Request) -> Response:
    """``GET /api/locales/{tag}``"""
    one = app_state_of(request).locales.get(request.path_params["tag"])
    if one is None:
        raise refusal(ErrorCode.NOT_FOUND)
    texts = LocaleTexts(tag=one.tag, name=one.name, version=one.version, texts=dict(one.texts))
    return json_response(texts)


ROUTES = (
    ScopedRoute(PATH, list_locales, methods=["GET"], scope=None),
    ScopedRoute(f"{PATH}/{{tag}}", read_locale, methods=["GET"], scope=None),
)
