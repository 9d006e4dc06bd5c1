"""Reads forms with files (``multipart/form-data``) within a limit. A file larger than a megabyte is on disk while it is
read, never whole in main memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message, Receive

from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.http.app_state import BODY_OVERHEAD

MAX_FIELDS = 32
PIECE_BYTES = 128 * 1024


@asynccontextmanager
async def read_form(request: Request, *, max_file: int) -> AsyncIterator[FormData]:
    """Yield the fields of a form with one file of at most ``max_file`` bytes.

    Refused with ``too_large`` as soon as the limit is exceeded. Raises InvalidField for a body that is no such form.
    """
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise InvalidField("Content-Type", "It is multipart/form-data.")
    limited = Request(request.scope, _limited(request.receive, max_file + BODY_OVERHEAD))
    form = limited.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=BODY_OVERHEAD)
    try:
        opened = await form.__aenter__()
    except (MultiPartException, HTTPException) as error:
        raise InvalidField((), "It is no valid multipart form with one file.") from error
    try:
        yield opened
    finally:
        await opened.close()


def file_field(form: FormData, name: str, *, max_size: int) -> UploadFile:
    """Return the file of a form. Raises InvalidField when there is none, or when it is empty or too large."""
    file = form.get(name)
    if not isinstance(file, UploadFile):
        raise InvalidField((name,), "The form has no file of this name.")
    if not file.size:
        raise InvalidField((name,), "The file is empty.")
    if file.size > max_size:
        raise too_large_file(name, max_size)
    return file


def text_field(form: FormData, name: str) -> str | None:
    """Return a text of a form, None without one. Raises InvalidField when it is a file."""
    value = form.get(name)
    if isinstance(value, UploadFile):
        raise InvalidField((name,), "It is a text.")
    return value


def too_large_file(name: str, max_size: int) -> InvalidField:
    """Return the refusal of a file that is too large."""
    limit = f"A file has at most {max_size // (1024 * 1024)} MiB."
    return InvalidField((name,), limit, ErrorCode.TOO_LARGE)


async def pieces_of(file: UploadFile) -> AsyncIterator[bytes]:
    """Yield the content of a file."""
    while piece := await file.read(PIECE_BYTES):
        yield piece


def _limited(receive: Receive, limit: int) -> Receive:
    received = 0

    async def limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise refusal(ErrorCode.TOO_LARGE)
        return message

    return limited
