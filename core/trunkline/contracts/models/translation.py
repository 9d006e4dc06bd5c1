"""Functions that adapters share to translate a vendor's answers: arguments, ids of tool calls, and errors."""

import math
import os
import re
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from trunkline._util.text import truncate_words
from trunkline.contracts.conversations.messages import RAW_ARGUMENTS, ToolCall
from trunkline.contracts.models.adapter import ModelRequest
from trunkline.errors import ErrorCode, ModelError, ModelFault

MAX_DETAIL = 500
"""Largest number of characters of an error's detail."""

MAX_PAUSE = 86_400.0
"""Largest number of seconds that a vendor's pause counts as."""


UNKNOWN_MODEL = re.compile(
    r"HTTP 404|model identifier is invalid|not a valid model|invalid model\b|model not exist|model_not_found",
    re.IGNORECASE,
)
"""What the details of an error have if the vendor has no such model. Bedrock, OpenRouter, Mistral and DeepSeek answer
400."""


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a tool call from their JSON text.

    Text that is no JSON object is kept under the key ``""`` (``RAW_ARGUMENTS``), so that the tools worker or the client
    gets the model's text and can repair or refuse it. No tool has a parameter of that name.
    """
    if not text.strip():
        return {}
    try:
        arguments = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {RAW_ARGUMENTS: text}
    return {RAW_ARGUMENTS: text} if RAW_ARGUMENTS in arguments else arguments


def is_complete(call: ToolCall) -> bool:
    """Report whether the arguments were a JSON object. Those of a call that was cut off are not."""
    return RAW_ARGUMENTS not in call.arguments


class CallIds:
    """Gives every tool call of a turn a unique id. Some vendors give no ids, or the tool's name.

    Guarantees: no id is that of a call in the request, nor one that was returned before.

    Not guaranteed: that the same answer gets the same ids again.
    """

    def __init__(self, request: ModelRequest) -> None:
        self._taken = {call.id for message in request.messages for call in message.tool_calls}

    def unique(self, id: str | None) -> str:
        """Return the id, or a new id if it is empty or taken. Raises nothing."""
        chosen = id if id and id not in self._taken else f"call_{uuid.uuid4().hex[:24]}"
        self._taken.add(chosen)
        return chosen


def model_error(fault: ModelFault, detail: str, *, retry_after: float | None = None) -> ModelError:
    """Return a model error with the code ``provider_error``. The detail is shortened to ``MAX_DETAIL`` characters."""
    detail = truncate_words(detail, MAX_DETAIL)
    return ModelError(ErrorCode.PROVIDER_ERROR, fault, detail, retry_after=retry_after)


def overflow_error(detail: str) -> ModelError:
    """Return the error of a request that exceeds the model's context window."""
    return ModelError(ErrorCode.CONTEXT_OVERFLOW, "refused", truncate_words(detail, MAX_DETAIL))


def with_cure(
    error: ModelError, section: str, *, key: str = "api_key", address: str = "base_url"
) -> ModelError:
    """Return the error with what to do in its detail, if a setting of the adapter's section may be its cause: a refused
    key, a server that cannot be reached, an unknown model. ``key`` and ``address`` are the settings' names.
    """
    cure = ""
    if error.fault == "authentication":
        cure = f"check {key} in [{section}]"
    elif error.fault == "unavailable" and "cannot be reached" in error.detail:
        cure = f"check {address} in [{section}]"
    elif error.fault == "refused" and UNKNOWN_MODEL.search(error.detail):
        cure = f'check model in [{section}], or where it was chosen; "trunkline models" lists the names'
    if not cure or f"[{section}]" in error.detail:
        return error
    error.detail = truncate_words(f"{error.detail.rstrip('. ')}; {cure}", MAX_DETAIL)
    error.args = (f"{error.code} ({error.fault}): {error.detail}",)
    return error


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds after which a server accepts another request, by its headers ``retry-after-ms`` or
    ``retry-after`` (seconds or a date); None if they do not say. At most ``MAX_PAUSE``. ``now`` is the time in seconds
    since the epoch.
    """
    given = headers.get("retry-after", "")
    seconds: float | None = None
    with suppress(ValueError, OverflowError):
        date = parsedate_to_datetime(given)
        date = date.replace(tzinfo=date.tzinfo or UTC)
        seconds = date.timestamp() - (time.time() if now is None else now)
    with suppress(ValueError):
        seconds = float(given)
    with suppress(ValueError):
        seconds = float(headers.get("retry-after-ms", "")) / 1000
    return min(max(0.0, seconds), MAX_PAUSE) if seconds is not None and math.isfinite(seconds) else None


def os_error_text(error: BaseException | None) -> str:
    """Return the operating system's own message, such as "Connection refused", from a library's error that wraps it."""
    if error is None:
        return ""
    inner = [error.__cause__, error.__context__, *getattr(error, "exceptions", ())]
    said = next(filter(None, map(os_error_text, inner)), "")
    if said or not isinstance(error, OSError):
        return said
    number = error.errno or 0
    return os.strerror(number) if number > 0 else error.strerror or ""
