"""The cookie with the token of a session, which no script can read and no other site sends."""

from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.tokens import SESSION_SECONDS
from trunkline.workers.gateway.auth.token_service import NewToken
from trunkline.workers.gateway.http.app_state import services_of


def set_session_cookie(request: Request, response: Response, new: NewToken) -> None:
    """Add the cookie of a session to a response."""
    expires = new.record.expires
    seconds = (expires - datetime.now(UTC)).total_seconds() if expires is not None else SESSION_SECONDS
    response.set_cookie(
        services_of(request).auth.registry.session_cookie,
        new.text,
        max_age=int(seconds),
        path="/",
        httponly=True,
        samesite="strict",
        secure=_is_https(request),
    )


def _is_https(request: Request) -> bool:
    """Report whether the browser uses https, as the connection, its own origin or a proxy says. A client that lies
    about it only loses its own cookie.
    """
    if request.url.scheme == "https":
        return True
    origin = request.headers.get("origin", "")
    return origin.startswith("https://") or request.headers.get("x-forwarded-proto", "") == "https"
