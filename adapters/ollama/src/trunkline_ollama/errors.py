"""Translates failures of the server and the HTTP library to the fixed codes. No key is in an error."""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from trunkline import ConfigError
from trunkline.api.model import ModelError, model_error, os_error_text, overflow_error, retry_after, with_cure

OVERFLOW = re.compile(
    r"longer than the (model's )?(maximum )?context (length|size|window)"
    r"|exceed(s|ed|ing)? (the |max(imum)? |model's |available )*context (length|size|window)"
    r"|context (length|size|window) (has been )?exceed"
    r"|prompt (is )?too long",
    re.IGNORECASE,
)
"""Messages for a request that exceeds the context window: of Ollama and of the llama.cpp server that it runs."""

MISSING = re.compile(r"^model (['\"].*['\"] )?not found|try pulling it", re.IGNORECASE)
"""Messages for a model that the server does not have."""

CURES = (
    (re.compile(r"does not support tools", re.IGNORECASE), "choose a model with the capability tools"),
    (
        re.compile(r"does not support thinking", re.IGNORECASE),
        "leave reasoning_effort out, or choose a model that thinks",
    ),
    (
        re.compile(r"requires more (system )?memory", re.IGNORECASE),
        "choose a smaller model or a smaller num_ctx",
    ),
)
"""Messages that another request of the same kind gets again, with the cure."""


class MissingModelError(ModelError):
    """The server does not have the model. ``pull`` in the settings, or a person, can pull it."""


def from_status(
    status: int, content: bytes, headers: Mapping[str, str], key: str, model: str = ""
) -> ModelError:
    """Return the error of an HTTP answer. ``content`` is its body."""
    error = _from_message(status, _message(content), key, model)
    error.retry_after = retry_after(headers)
    return error


def from_stream_error(error: Any, key: str, model: str = "") -> ModelError:
    """Return the error that the server reports in its answer, which has the status 200. It counts as the server's own
    failure unless its message is known.
    """
    return _from_message(500, _text(error), key, model)


def from_exception(error: Exception, *, began: bool, key: str, url: str) -> ModelError:
    """Return the error for an exception of the HTTP library or a decoder. ``began`` is true if the answer had begun."""
    return with_cure(_translated(error, began=began, key=key, url=url), "adapters.ollama")


def _translated(error: Exception, *, began: bool, key: str, url: str) -> ModelError:
    import httpx2

    kind = type(error).__name__
    match error:
        case ModelError():
            return error
        case ConfigError():
            return model_error("authentication", error.sentence)
        case httpx2.ConnectTimeout():
            return model_error("timeout", f"the connection to {url} could not be made in time")
        case httpx2.TimeoutException():
            return model_error("timeout", "the server sent nothing for too long")
        case httpx2.ConnectError():
            why = os_error_text(error) or "no connection"
            return model_error("unavailable", f'{url} cannot be reached: {why}; start it with "ollama serve"')
        case httpx2.ReadError() | httpx2.WriteError() | httpx2.RemoteProtocolError():
            return model_error("interrupted", f"the connection broke ({kind})")
        case httpx2.TransportError() | httpx2.StreamError():
            # Only the kind is told: some messages of the HTTP library quote headers.
            return model_error(
                "interrupted" if began else "unavailable", f"the request could not be sent ({kind})"
            )
        case json.JSONDecodeError() | UnicodeDecodeError() | msgspec.MsgspecError():
            return model_error("bad_response", _redacted(f"an answer cannot be read: {error}", key))
        case _:
            return model_error("bad_response", f"unexpected {kind}")


def _from_message(status: int, message: str, key: str, model: str) -> ModelError:
    detail = _redacted(f"HTTP {status}: {message}", key)
    if status in (401, 403):
        return model_error("authentication", detail)
    if status in (402, 429):
        return model_error("rate_limited", detail)
    if OVERFLOW.search(message):
        return overflow_error(detail)
    if MISSING.search(message):
        told = model_error("refused", f'{detail}; run "ollama pull {model}"')
        return MissingModelError(told.code, told.fault, told.detail)
    for known, cure in CURES:
        if known.search(message):
            return model_error("refused", f"{detail}; {cure}")
    if status in (408, 504):
        return model_error("timeout", detail)
    if status >= 500:
        return model_error("unavailable", detail)
    return model_error("refused" if status >= 400 else "bad_response", detail)


def _message(content: bytes) -> str:
    try:
        return _text(json.loads(content))
    except ValueError:
        return content.decode(errors="replace").strip()


def _text(error: Any) -> str:
    """Return the message of an error, which is a text, or a table in other servers with this API."""
    if isinstance(error, dict):
        return _text(error.get("error") or error.get("message") or "")
    return str(error or "")


def _redacted(text: str, key: str) -> str:
    return text.replace(key, "[key]") if key else text
