"""The translation of failures at the gateway's edge: a fixed error code with a sentence that is safe to
show."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trunkline.errors import FIXED_SENTENCES, ErrorCode, TrunklineError
from trunkline.runtime.http.validation_errors import json_pointer
from trunkline_bus import BusError, Refusal, RemoteFault, StorageFull, new_id

log = logging.getLogger(__name__)

T = TypeVar("T")
P = TypeVar("P")

_CODES = {
    "bad_request": ErrorCode.INVALID_REQUEST,
    "invalid_path": ErrorCode.INVALID_REQUEST,
    "write_conflict": ErrorCode.CONFLICT,
    "write_failure": ErrorCode.STORAGE_FAILURE,
}
"""Codes of other workers that differ from the fixed codes. All their other codes are fixed codes already."""


def refusal(code: ErrorCode, sentence: str = "") -> Refusal:
    """Return a refusal with the code's fixed sentence, or with ``sentence``, which must contain no secret."""
    return Refusal(code, sentence or FIXED_SENTENCES[code])


class InvalidField(Refusal):
    """A request with an invalid field.

    ``field`` is the path in the body, such as ``("messages", 0, "role")``, or the name of a parameter or
    header; it is empty when the whole body is invalid. With the code ``not_found`` the field names an object
    that does not exist. ``named`` is OpenAI's own code of the error, for its clients.
    """

    def __init__(
        self,
        field: tuple[str | int, ...] | str,
        reason: str,
        code: ErrorCode = ErrorCode.INVALID_REQUEST,
        *,
        named: str | None = None,
    ) -> None:
        self.field = field
        self.named = named
        self.reason = reason
        super().__init__(code, f"{self.param or 'the request'}: {reason}")

    @property
    def param(self) -> str:
        """The field in OpenAI's notation: ``messages[0].role``."""
        if isinstance(self.field, str):
            return self.field
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.field)
        return "".join(parts).removeprefix(".")

    @property
    def pointer(self) -> str:
        """The field as a JSON pointer, ``/messages/0/role``, when it is in the body; else its name."""
        return self.field if isinstance(self.field, str) else json_pointer(self.field)


def error_code(code: str) -> ErrorCode:
    """Return the fixed code for a code of another worker or a plugin."""
    if code in _CODES:
        return _CODES[code]
    return ErrorCode(code) if code in set(ErrorCode) else ErrorCode.INTERNAL


def to_refusal(error: Exception, reference: str) -> Refusal:
    """Return the refusal for any failure. Details that must not be shown are logged under ``reference``."""
    match error:
        case InvalidField():
            return error
        case Refusal():
            return Refusal(error_code(error.code), error.message)
        case RemoteFault():
            return _log_and_refuse(error_code(error.code), error, reference)
        case StorageFull():
            return _log_and_refuse(ErrorCode.STORAGE_FAILURE, error, reference)
        case BusError():
            return _log_and_refuse(ErrorCode.ENGINE_UNAVAILABLE, error, reference)
        case TrunklineError():
            return _log_and_refuse(ErrorCode.STORAGE_FAILURE, error, reference)
        case _:
            return _log_and_refuse(ErrorCode.INTERNAL, error, reference)


def _log_and_refuse(code: ErrorCode, error: Exception, reference: str) -> Refusal:
    if code in (ErrorCode.NOT_FOUND, ErrorCode.CONFLICT):
        return refusal(code)
    trouble = error if code is ErrorCode.INTERNAL else None
    log.error("%s (%s): %s", code.value, reference, error, exc_info=trouble)
    return refusal(code)


def refuse_errors(handler: Callable[[P], Awaitable[T]]) -> Callable[[P], Awaitable[T]]:
    """Return the handler with every exception turned into a refusal with a fixed code."""

    async def safe(request: P) -> T:
        try:
            return await handler(request)
        except Exception as error:
            raise to_refusal(error, new_id("err")) from error

    return safe
