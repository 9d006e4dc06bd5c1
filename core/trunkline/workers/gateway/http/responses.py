"""JSON responses, and the HTTP form of every failure."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.runtime.http.auth_middleware import CORRELATION
from trunkline.workers.gateway.errors import InvalidField, to_refusal
from trunkline.workers.gateway.http.app_state import OPENAI_PREFIX, is_owner
from trunkline.workers.gateway.http.schemas.schema_base import Error
from trunkline.workers.gateway.queue_limiter import QueueFull
from trunkline_bus import Refusal

log = logging.getLogger(__name__)

STATUS: dict[ErrorCode, int] = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.CONFLICT: 409,
    ErrorCode.TOO_LARGE: 413,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.ENGINE_UNAVAILABLE: 503,
    ErrorCode.STORAGE_FAILURE: 503,
    ErrorCode.PROVIDER_ERROR: 502,
    ErrorCode.OVER_BUDGET: 429,
    ErrorCode.NOT_SENT: 403,
    ErrorCode.TOOL_ERROR: 502,
    ErrorCode.CONTEXT_OVERFLOW: 400,
    ErrorCode.PANIC: 503,
    ErrorCode.INTERNAL: 500,
}

CREDENTIAL_HINT = (
    "Send the token of this home, or an access token that has not ended, in the header Authorization, as Bearer TOKEN, "
    "or in X-API-Key."
)
"""The hint for a missing or wrong credential of a request. It is the same for all, so that it reveals nothing about the
credential."""


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response that forbids caching, because it may contain a person's conversations."""
    return Response(
        msgspec.json.encode(body),
        status_code=status,
        headers={"cache-control": "no-store", **(headers or {})},
        media_type="application/json",
    )


class ShieldedResponse:
    """The response to a request that may end its own access token, which ends its requests: the work is done and
    answered nevertheless.
    """

    def __init__(self, work: Callable[[], Awaitable[Response]]) -> None:
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Do the work, then send its response."""
        with anyio.CancelScope(shield=True):
            response = await self._work()
            await response(scope, receive, send)


def error_body(
    code: ErrorCode, wrong: InvalidField | QueueFull | None = None, detail: str = "", needs: str = ""
) -> Error:
    """Return the code with its fixed sentence.

    ``metadata`` holds the wrong field and the reason, the state of the queue, what a request ``needs``, or
    why a turn failed.
    """
    reason = wrong.reason if wrong is not None else needs
    metadata = {"reason": reason} if reason else {}
    if isinstance(wrong, InvalidField):
        metadata["field"] = wrong.pointer
    metadata |= {"detail": detail} if detail else {}
    return Error(code=code, message=FIXED_SENTENCES[code], metadata=metadata)


def error_response(
    code: ErrorCode,
    path: str,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    wrong: InvalidField | QueueFull | None = None,
    why: str = "",
) -> Response:
    """Return the response to a failure, in the form that clients of the path expect. ``why`` is the reason, "" when the
    client may not see it."""
    headers = {**(headers or {})}
    needs = why
    if code is ErrorCode.UNAUTHORIZED:
        headers["www-authenticate"], needs = "Bearer", why or CREDENTIAL_HINT
    if path.startswith(OPENAI_PREFIX):
        from trunkline.workers.gateway.http.openai.schemas import error_object

        return json_response(error_object(code, wrong=wrong, detail=needs), status or STATUS[code], headers)
    return json_response(error_body(code, wrong, needs=needs), status or STATUS[code], headers)


async def exception_response(request: Request, error: Exception) -> Response:
    """Return the response to any exception of a handler."""
    wrong = error if isinstance(error, InvalidField | QueueFull) else None
    code = error_code_for(request, error)
    why = _sign_in_reason(error) or conflict_reason(request, error)
    return error_response(code, request.url.path, wrong=wrong, why=why)


def _sign_in_reason(error: Exception) -> str:
    """Return what somebody can do whose code or passkey was refused; "" for other failures."""
    if not isinstance(error, Refusal) or error.code != ErrorCode.UNAUTHORIZED:
        return ""
    return "" if error.message == FIXED_SENTENCES[ErrorCode.UNAUTHORIZED] else error.message


def conflict_reason(request: HTTPConnection, error: Exception) -> str:
    """Return why a request conflicts with the current state, as commands report it.

    The text may name a file of memory or a person, so only the owner gets it; "" for other clients and other
    failures.
    """
    if not isinstance(error, Refusal) or error.code != ErrorCode.CONFLICT or not is_owner(request):
        return ""
    return "" if error.message == FIXED_SENTENCES[ErrorCode.CONFLICT] else error.message


def error_code_for(request: HTTPConnection, error: Exception) -> ErrorCode:
    """Return the code of any failure. Details that must not be shown are logged under the request's
    correlation id, as is the reason why a request is invalid."""
    reference = request.scope[CORRELATION]
    code = ErrorCode(to_refusal(error, reference).code)
    if code is ErrorCode.INVALID_REQUEST and isinstance(error, Refusal):
        where = f"{request.scope.get('method', 'WebSocket')} {request.url.path!r:.200}"
        log.info("not a valid request (%s): %s: %.400r", reference, where, error.message)
    return code
