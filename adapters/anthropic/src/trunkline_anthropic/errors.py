"""Translates failures of the vendor, the SDK and its HTTP library to the fixed codes. No key is in an error."""

import json
import re
from typing import Any

import msgspec

from trunkline.api.model import ModelError, model_error, os_error_text, overflow_error, retry_after, with_cure

OVERFLOW = re.compile(
    r"prompt is too long|exceed(s|ed)? (the )?(model's )?(maximum )?context (limit|window|length)"
    r"|maximum context length|input is too long|context length exceeded|prompt too long",
    re.IGNORECASE,
)
"""Messages for a request that exceeds the context window: of Anthropic, and of servers with its protocol."""

SPENT = re.compile(r"credit balance is too low|spend(ing)? limit|usage limits?", re.IGNORECASE)
"""Messages for an account without credit, which the vendor sends with status 400 as well as 402."""

STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status of each type of error, for errors that arrive in the stream of an answer, which has status 200."""


def from_status(status: int, body: Any, key: str) -> ModelError:
    """Return the error of an HTTP answer, or of an error event in a stream with the status of its type."""
    kind, message = _type_and_message(body)
    detail = f"HTTP {status} {kind}: {message}".replace(key, "[key]")
    if status in (401, 403):
        return model_error("authentication", detail)
    if status in (402, 429) or SPENT.search(message):
        return model_error("rate_limited", detail)
    if OVERFLOW.search(message):
        return overflow_error(detail)
    if status in (408, 504):
        return model_error("timeout", detail)
    if status >= 500:
        return model_error("unavailable", detail)
    return model_error("refused" if status >= 400 else "bad_response", detail)


def from_stream_error(error: Any, key: str) -> ModelError:
    """Return the error that a server reports within its answer. An unknown type counts as the server's failure."""
    kind, _ = _type_and_message(error)
    return from_status(STATUS_OF.get(kind, 500), error, key)


def from_exception(error: Exception, *, began: bool, key: str) -> ModelError:
    """Return the error for an exception of the SDK or its HTTP library. ``began`` is true if the answer had begun."""
    return with_cure(_translated(error, began=began, key=key), "adapters.anthropic")


def _translated(error: Exception, *, began: bool, key: str) -> ModelError:
    import anthropic
    import httpx2

    match error:
        case ModelError():
            return error
        case anthropic.APIStatusError():
            translated = from_status(error.status_code, error.body, key)
            translated.retry_after = retry_after(error.response.headers)
            return translated
        case anthropic.APITimeoutError() if isinstance(error.__cause__, httpx2.ConnectTimeout):
            return model_error("timeout", "the connection could not be made in time")
        case anthropic.APITimeoutError():
            return model_error("timeout", "the server sent nothing for too long")
        case anthropic.APIConnectionError():
            return _from_connection(error.__cause__, began)
        case httpx2.TransportError():
            return _from_connection(error, began)
        case json.JSONDecodeError() | UnicodeDecodeError() | msgspec.MsgspecError():
            return model_error("bad_response", f"an answer cannot be read: {error}".replace(key, "[key]"))
        case _:
            return model_error("bad_response", f"unexpected {type(error).__name__}")


def _from_connection(cause: BaseException | None, began: bool) -> ModelError:
    """Only the kind of the failure is told: some messages of the HTTP library quote headers."""
    import httpx2

    kind = type(cause).__name__
    if isinstance(cause, httpx2.ConnectError):
        return model_error("unavailable", f"the server cannot be reached: {os_error_text(cause) or cause}")
    broken = isinstance(cause, httpx2.ReadError | httpx2.WriteError | httpx2.RemoteProtocolError)
    if began or broken:
        return model_error("interrupted", f"the connection broke ({kind})")
    return model_error("unavailable", f"the request could not be sent ({kind})")


def _type_and_message(body: Any) -> tuple[str, str]:
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return "", str(error or "")
    message = error.get("message") or error.get("detail") or ""
    return str(error.get("type") or error.get("code") or ""), str(message)
