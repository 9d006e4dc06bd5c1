"""Reading requests: bodies within a limit, JSON into structs, and query parameters. Everything else is refused."""

from datetime import UTC, datetime
from typing import TypeVar

import msgspec
from starlette.requests import Request

from trunkline.errors import ErrorCode
from trunkline.runtime.http.validation_errors import Field, field_and_reason
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.http.app_state import app_state_of

T = TypeVar("T")

ESCAPE_FACTOR = 6
"""How many bytes of JSON a byte of content may take."""

BODY_OVERHEAD = 65_536
"""Bytes of a body besides its content."""


async def read_body(request: Request) -> bytes:
    """The body. Refused with ``too_large`` as soon as it is, without reading on."""
    limit = app_state_of(request).max_content * ESCAPE_FACTOR + BODY_OVERHEAD
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise refusal(ErrorCode.TOO_LARGE)
    chunks = bytearray()
    async for chunk in request.stream():
        chunks += chunk
        if len(chunks) > limit:
            raise refusal(ErrorCode.TOO_LARGE)
    return bytes(chunks)


async def read_json(request: Request, kind: type[T]) -> T:
    """The body as a struct. Refused with ``invalid_request`` when it is not one."""
    return _decoded(await read_body(request), kind)


async def read_optional_json(request: Request, kind: type[T]) -> T:
    """The same; an empty body stands for ``{}``."""
    return _decoded(await read_body(request) or b"{}", kind)


def _decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise invalid_field(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidField((), "It is not JSON.") from error
    except RecursionError as error:
        raise InvalidField((), "Too many lists and objects within each other.") from error


def invalid_field(message: str, within: Field = ()) -> InvalidField:
    """What msgspec says of a value, with the field that it names."""
    return InvalidField(*field_and_reason(message, within))


def int_param(request: Request, name: str, default: int, *, least: int, most: int) -> int:
    """A number of the query, within bounds."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise InvalidField(name, f"It is a number from {least} to {most}.")
    return int(text)


def datetime_param(request: Request, name: str) -> datetime | None:
    """A time of the query in ISO 8601; UTC unless it says otherwise."""
    text = request.query_params.get(name)
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text.replace(" ", "+"))  # an unquoted plus arrives as a space
    except ValueError as error:
        raise InvalidField(name, "It is a time like 2026-01-31T12:00:00Z.") from error
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def bool_param(request: Request, name: str) -> bool:
    """A yes or no of the query."""
    text = request.query_params.get(name, "false").lower()
    if text not in ("true", "false", "1", "0"):
        raise InvalidField(name, "It is true or false.")
    return text in ("true", "1")
