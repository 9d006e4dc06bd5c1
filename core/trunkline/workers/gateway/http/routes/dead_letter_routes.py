"""Messages that no worker could read or handle, under ``/api/dead-letters``. Only for the owner."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from trunkline._util.text import printable
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.errors import ErrorCode
from trunkline.runtime.dead_letters import StoredDeadLetter
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.overview_schemas import (
    DeadLetterDetail,
    DeadLetterItem,
    DeadLetterList,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

LONGEST_ID = 18
"""The largest number of digits of an id."""


async def list_letters(request: Request) -> Response:
    """``GET /api/dead-letters``"""
    found = await services_of(request).dead_letters.list_letters(sender_of(request))
    return json_response(DeadLetterList(dead_letters=tuple(DeadLetterItem(**_facts(one)) for one in found)))


async def show(request: Request) -> Response:
    """``GET /api/dead-letters/{id}``"""
    letter, refused = await services_of(request).dead_letters.find(_id(request), sender_of(request))
    format, text = letter.readable_body()
    return json_response(
        DeadLetterDetail(
            **_facts(letter), format=format, text=text, complete=letter.is_complete, refused=refused
        )
    )


async def retry(request: Request) -> Response:
    """``POST /api/dead-letters/{id}/retry``"""
    await services_of(request).dead_letters.retry(_id(request), sender_of(request))
    return Response(status_code=204)


async def delete(request: Request) -> Response:
    """``DELETE /api/dead-letters/{id}``"""
    await services_of(request).dead_letters.delete(_id(request), sender_of(request))
    return Response(status_code=204)


ROUTES = (
    ScopedRoute("/api/dead-letters", list_letters, methods=["GET"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/dead-letters/{id}", show, methods=["GET"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/dead-letters/{id}", delete, methods=["DELETE"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/dead-letters/{id}/retry", retry, methods=["POST"], scope=TokenScope.OPERATE),
)


def _id(request: Request) -> int:
    """Return the id in the path. Refused with ``not_found`` if it is no number."""
    text: str = request.path_params["id"]
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_ID):
        raise refusal(ErrorCode.NOT_FOUND)
    return int(text)


def _facts(one: StoredDeadLetter) -> dict[str, Any]:
    return {
        "id": one.id,
        "time": one.time,
        "source": printable(one.source),
        "subject": printable(one.letter.subject),
        "reason": printable(one.letter.reason),
        "detail": printable(one.letter.detail),
        "size": one.letter.size,
    }
