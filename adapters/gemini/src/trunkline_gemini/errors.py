"""Translates failures of the vendor, the SDK and its HTTP library to the fixed codes. No key is in an error."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trunkline.api.model import ModelError, model_error, os_error_text, overflow_error, retry_after, with_cure

OVERFLOW = re.compile(
    r"exceeds? the maximum (number of )?tokens|exceeds the (model's )?(context|token) (window|limit)"
    r"|input (context )?is too long|input token count",
    re.IGNORECASE,
)
"""Messages for a request that exceeds the context window."""

INVALID_KEY = ("API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED")
"""The reasons of a refused key, which the vendor sends with status 400."""

STATUS_OF = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNKNOWN": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""The HTTP status of each status of google.rpc, for errors that arrive in the stream of an answer."""

RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


def from_status(status: int, body: Any, key: str, headers: Mapping[str, str] | None = None) -> ModelError:
    """Return the error of an HTTP answer, or of an error in a stream with the status of its code."""
    error = _google_error(body)
    name, message = str(error.get("status") or ""), str(error.get("message") or "")
    found = _from_status(status, name, message, _reason(error), key)
    found.retry_after = _retry_delay(error) or retry_after(headers or {})
    return found


def from_stream_error(body: Any, key: str) -> ModelError:
    """Return the error that a server reports within its answer. An unknown code counts as the server's failure."""
    error = _google_error(body)
    code = error.get("code")
    known = (
        code if isinstance(code, int) and 400 <= code < 600 else STATUS_OF.get(str(error.get("status")), 500)
    )
    return from_status(known, error, key)


def from_exception(error: Exception, *, began: bool, key: str) -> ModelError:
    """Return the error for an exception of the SDK or its HTTP library. ``began`` is true if the answer had begun."""
    return with_cure(_translated(error, began=began, key=key), "adapters.gemini")


def _translated(error: Exception, *, began: bool, key: str) -> ModelError:
    import httpx2
    from google.genai import errors

    match error:
        case ModelError():
            return error
        case errors.APIError():
            return from_status(error.code, error.details, key, getattr(error.response, "headers", None))
        case httpx2.ConnectTimeout():
            return model_error("timeout", "the connection could not be made in time")
        case httpx2.TimeoutException():
            return model_error("timeout", "the server sent nothing for too long")
        case httpx2.TransportError():
            return _from_connection(error, began)
        case json.JSONDecodeError() | UnicodeDecodeError() | msgspec.MsgspecError():
            return model_error("bad_response", f"an answer cannot be read: {error}".replace(key, "[key]"))
        case _:
            return model_error("bad_response", f"unexpected {type(error).__name__}")


def _from_status(status: int, name: str, message: str, reason: str, key: str) -> ModelError:
    detail = f"HTTP {status} {name}: {message}".replace(key, "[key]")
    if status in (401, 403) or reason in INVALID_KEY:
        return model_error("authentication", detail)
    if status == 429:
        return model_error("rate_limited", detail)
    if status < 500 and OVERFLOW.search(message):
        return overflow_error(detail)
    if status in (408, 504):
        return model_error("timeout", detail)
    if status == 499 or status >= 500:
        return model_error("unavailable", detail)
    return model_error("refused" if status >= 400 else "bad_response", detail)


def _from_connection(error: BaseException, began: bool) -> ModelError:
    """Only the kind of the failure is told: some messages of the HTTP library quote headers."""
    import httpx2

    kind = type(error).__name__
    if isinstance(error, httpx2.ConnectError):
        return model_error("unavailable", f"the server cannot be reached: {os_error_text(error) or error}")
    broken = isinstance(error, httpx2.ReadError | httpx2.WriteError | httpx2.RemoteProtocolError)
    if began or broken:
        return model_error("interrupted", f"the connection broke ({kind})")
    return model_error("unavailable", f"the request could not be sent ({kind})")


def _google_error(body: Any) -> dict[str, Any]:
    """Return the google.rpc.Status in the body of an error, which is a list for some methods."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    return error if isinstance(error, dict) else {"message": str(error or "")}


def _details(error: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    details = error.get("details")
    return (one for one in details if isinstance(one, dict)) if isinstance(details, list) else ()


def _reason(error: Mapping[str, Any]) -> str:
    reasons = (one.get("reason") for one in _details(error) if one.get("@type") == ERROR_INFO)
    return str(next(filter(None, reasons), ""))


def _retry_delay(error: Mapping[str, Any]) -> float | None:
    delays = (str(one.get("retryDelay")) for one in _details(error) if one.get("@type") == RETRY_INFO)
    seconds = next((delay[:-1] for delay in delays if re.fullmatch(r"\d+(\.\d+)?s", delay)), "")
    return retry_after({"retry-after": seconds})
