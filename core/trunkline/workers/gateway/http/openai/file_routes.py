"""OpenAI's files over the gateway's file service: upload, list, retrieve, content and delete."""

from typing import Literal
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.files import PURPOSES, UploadedFile
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.multipart_reader import file_field, pieces_of, read_form, text_field
from trunkline.workers.gateway.http.openai.schemas import FullStruct
from trunkline.workers.gateway.http.request_reader import paginate
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

EXPIRY_RANGE = (3_600, 30 * 86_400)
"""The shortest and longest ``expires_after``, in seconds, as at OpenAI."""


class FileObject(FullStruct, frozen=True, kw_only=True):
    """An uploaded file."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    expires_at: int
    filename: str
    purpose: str
    status: Literal["processed"] = "processed"


class FileList(FullStruct, frozen=True, kw_only=True):
    """A page of uploaded files."""

    object: Literal["list"] = "list"
    data: tuple[FileObject, ...]
    first_id: str | None
    last_id: str | None
    has_more: bool


class FileDeleted(FullStruct, frozen=True, kw_only=True):
    """The file is deleted."""

    id: str
    object: Literal["file"] = "file"
    deleted: Literal[True] = True


async def upload(request: Request) -> Response:
    """``POST /v1/files``"""
    files, owner = services_of(request).files, sender_of(request).identity
    async with read_form(request, max_file=files.max_size) as form:
        file = file_field(form, "file", max_size=files.max_size)
        stored = await files.add(
            pieces_of(file), owner, name=file.filename or "", purpose=_purpose(form), lifetime=_lifetime(form)
        )
    return json_response(_file_object(stored))


async def list_files(request: Request) -> Response:
    """``GET /v1/files``"""
    found = await services_of(request).files.list_files(sender_of(request).identity)
    purpose = request.query_params.get("purpose")
    wanted = [file for file in found if purpose in (None, file.purpose)]
    page, has_more = paginate(request, wanted, [file.id for file in wanted], most=10_000, default=10_000)
    return json_response(
        FileList(
            data=tuple(map(_file_object, page)),
            first_id=page[0].id if page else None,
            last_id=page[-1].id if page else None,
            has_more=has_more,
        )
    )


async def retrieve(request: Request) -> Response:
    """``GET /v1/files/{id}``"""
    files, owner = services_of(request).files, sender_of(request).identity
    return json_response(_file_object(await files.get(request.path_params["id"], owner)))


async def content(request: Request) -> Response:
    """``GET /v1/files/{id}/content``"""
    id, owner, files = request.path_params["id"], sender_of(request).identity, services_of(request).files
    file = await files.get(id, owner)
    headers = {
        "content-length": str(file.size),
        "content-disposition": f"attachment; filename*=UTF-8''{quote(file.name)}",
        "cache-control": "no-store",
    }
    return StreamingResponse(files.pieces(id, owner), media_type="application/octet-stream", headers=headers)


async def delete(request: Request) -> Response:
    """``DELETE /v1/files/{id}``"""
    id = request.path_params["id"]
    await services_of(request).files.delete(id, sender_of(request).identity)
    return json_response(FileDeleted(id=id))


ROUTES = (
    ScopedRoute("/v1/files", upload, methods=["POST"], scope=TokenScope.CHAT),
    ScopedRoute("/v1/files", list_files, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/v1/files/{id}", retrieve, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/v1/files/{id}/content", content, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/v1/files/{id}", delete, methods=["DELETE"], scope=TokenScope.CHAT),
)


def _purpose(form: FormData) -> str:
    purpose = text_field(form, "purpose")
    if purpose not in PURPOSES:
        raise InvalidField(("purpose",), f"It is one of {', '.join(PURPOSES)}.")
    return purpose


def _lifetime(form: FormData) -> int | None:
    """Return the seconds of ``expires_after``, None without one."""
    seconds = text_field(form, "expires_after[seconds]")
    if text_field(form, "expires_after[anchor]") not in (None, "created_at"):
        raise InvalidField(("expires_after", "anchor"), "It is created_at.")
    if seconds is None:
        return None
    least, most = EXPIRY_RANGE
    if not (seconds.isascii() and seconds.isdigit() and least <= int(seconds[:9]) <= most):
        raise InvalidField(("expires_after", "seconds"), f"It is a number from {least} to {most}.")
    return int(seconds)


def _file_object(file: UploadedFile) -> FileObject:
    return FileObject(
        id=file.id,
        bytes=file.size,
        created_at=file.created_at,
        expires_at=file.expires_at,
        filename=file.name,
        purpose=file.purpose,
    )
