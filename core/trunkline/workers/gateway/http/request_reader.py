"""Reads requests: bodies within a limit, JSON into structs, and query parameters. Invalid input is refused."""

from collections.abc import MutableMapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import getitem
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from trunkline.contracts.blocks.paths import BLOCK_NAME_RULE, is_block_name
from trunkline.errors import ErrorCode
from trunkline.runtime.http.validation_errors import Field, field_and_reason
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.http.app_state import OPENAI_PREFIX, app_state_of

T = TypeVar("T")
Choice = TypeVar("Choice", bound=str)

MAX_WHOLE_FLOATS = 32
"""The largest number of integers in a body that may be written as numbers with a fraction of zero."""


async def read_body(request: Request) -> bytes:
    """Return the body. Refused with ``too_large`` as soon as the limit is exceeded, without reading
    further."""
    state = app_state_of(request)
    limit = state.max_body if request.url.path.startswith(OPENAI_PREFIX) else state.max_text_body
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise refusal(ErrorCode.TOO_LARGE)
    chunks = bytearray()
    async for chunk in request.stream():
        chunks += chunk
        if len(chunks) > limit:
            raise refusal(ErrorCode.TOO_LARGE)
    return bytes(chunks)


def with_limited_body(request: Request) -> Request:
    """Return the request for an endpoint that reads the body by itself, as those of plugins do. Its body is refused
    with ``too_large`` as soon as it is larger than a body with text may be."""
    limit, size = app_state_of(request).max_text_body, 0

    async def receive() -> MutableMapping[str, Any]:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise refusal(ErrorCode.TOO_LARGE)
        return message

    return Request(request.scope, receive)


async def read_json(request: Request, kind: type[T]) -> T:
    """Return the body as a struct. Raises InvalidField when it cannot be decoded."""
    return decode_json(await read_body(request), kind)


async def read_optional_json(request: Request, kind: type[T]) -> T:
    """Return the body as a struct, as ``read_json`` does; an empty body counts as ``{}``."""
    return decode_json(await read_body(request) or b"{}", kind)


def decode_json(body: bytes, kind: type[T]) -> T:
    """Return JSON as a struct. A whole number may be written with a fraction of zero (``16.0``), as JSON Schema has it.
    Raises InvalidField when the body cannot be decoded."""
    try:
        for _ in range(MAX_WHOLE_FLOATS):
            try:
                return msgspec.json.decode(body, type=kind)
            except msgspec.ValidationError as error:
                body = _with_integer(body, error)
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise invalid_field(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidField((), "It is not JSON.") from error
    except RecursionError as error:
        raise InvalidField((), "Too many lists and objects within each other.") from error


def _with_integer(body: bytes, error: msgspec.ValidationError) -> bytes:
    """Return the body with an integer in the field of the error. Raises the error again if it has another cause than a
    whole number with a fraction of zero.

    The bodies may be large, so Python code touches only the field; the library reads and writes the rest.
    """
    field, _ = field_and_reason(str(error))
    tree = msgspec.json.decode(body)
    try:
        *way, last = field
        place = reduce(getitem, way, tree)
        value = place[last]
    except (LookupError, TypeError, ValueError):  # the error is about no field, or one without a name
        raise error from None
    if not isinstance(value, float) or not value.is_integer():
        raise error
    place[last] = int(value)
    return msgspec.json.encode(tree)


def invalid_field(message: str, within: Field = ()) -> InvalidField:
    """Return an error of msgspec as the error of the field that it names."""
    return InvalidField(*field_and_reason(message, within))


def int_param(request: Request, name: str, default: int, *, least: int, most: int) -> int:
    """Return a number of the query. Raises InvalidField when it is not within the bounds."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise InvalidField(name, f"It is a number from {least} to {most}.")
    return int(text)


def paginate(
    request: Request, items: Sequence[T], ids: Sequence[str], *, most: int, default: int
) -> tuple[Sequence[T], bool]:
    """Return the page of a list that OpenAI's clients ask for with ``limit``, ``order`` and ``after``, and whether more
    follows. ``items`` are the oldest first; the newest come first by default. Raises InvalidField."""
    limit = int_param(request, "limit", default, least=1, most=most)
    order = request.query_params.get("order", "desc")
    if order not in ("asc", "desc"):
        raise InvalidField("order", "It is asc or desc.")
    ordered = list(zip(ids, items, strict=True))
    if order == "desc":
        ordered.reverse()
    after = request.query_params.get("after")
    if after is not None:
        places = [number for number, (id, _) in enumerate(ordered, start=1) if id == after]
        if not places:
            raise InvalidField("after", "It is the id of an object in the list.")
        ordered = ordered[places[0] :]
    return [item for _, item in ordered[:limit]], len(ordered) > limit


def datetime_param(request: Request, name: str) -> datetime | None:
    """Return a time of the query in UTC. It is written in ISO 8601, and in UTC unless it names a zone. Raises
    InvalidField when it is no time."""
    text = request.query_params.get(name)
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text.replace(" ", "+"))  # an unquoted plus arrives as a space
    except ValueError as error:
        raise InvalidField(name, "It is a time like 2026-01-31T12:00:00Z.") from error
    try:
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as error:
        raise InvalidField(name, "It is a time of the years 1 to 9999 in UTC.") from error


def required_param(request: Request, name: str) -> str:
    """Return a text of the query. Raises InvalidField when it is missing or empty."""
    text = request.query_params.get(name)
    if not text:
        raise InvalidField(name, "It is required.")
    return text


def block_param(request: Request, name: str) -> str | None:
    """Return the name of a block in the query; None without one. Raises InvalidField when no block can have it."""
    text = request.query_params.get(name)
    if not text:
        return None
    if not is_block_name(text):
        raise InvalidField(name, f"It is the name of a block: {BLOCK_NAME_RULE}.")
    return text


def choice_param(request: Request, name: str, choices: Sequence[Choice]) -> Choice | None:
    """Return a word of the query; None without one. Raises InvalidField for another word than the ``choices``."""
    text = request.query_params.get(name)
    if not text:
        return None
    for choice in choices:
        if choice == text:
            return choice
    raise InvalidField(name, f"It is one of {', '.join(choices)}.")


def bool_param(request: Request, name: str) -> bool:
    """Return a boolean of the query, false by default. Raises InvalidField when it is neither true nor
    false."""
    text = request.query_params.get(name, "false").lower()
    if text not in ("true", "false", "1", "0"):
        raise InvalidField(name, "It is true or false.")
    return text in ("true", "1")
