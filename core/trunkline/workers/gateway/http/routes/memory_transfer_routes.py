"""The export and import of all of memory, under ``/api/memory``. Only for the owner."""

from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import anyio
from anyio import AsyncFile
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import bool_param
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.memory_schemas import MemoryImported
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

ARCHIVE_TYPE = "application/x-tar"
MAX_ARCHIVE = 16 * 1024**3
"""The largest archive, in bytes."""

PIECE_BYTES = 256 * 1024


async def export(request: Request) -> Response:
    """``GET /api/memory/export``: the archive is deleted before it is sent, and stays readable until then."""
    memory = services_of(request).memory_transfer
    with ExitStack() as held:
        archive = held.enter_context(memory.archive_path(sender_of(request)))
        await memory.export(archive, sender_of(request))
        size = archive.stat().st_size
        file = await anyio.open_file(archive, "rb")
    headers = {
        "content-length": str(size),
        "content-disposition": 'attachment; filename="memory.tar"',
        "cache-control": "no-store",
    }
    return StreamingResponse(_pieces(file), media_type=ARCHIVE_TYPE, headers=headers)


async def bring(request: Request) -> Response:
    """``POST /api/memory/import?kind=&settings=&dry_run=``"""
    kind = request.query_params.get("kind") or None
    settings, dry_run = bool_param(request, "settings"), bool_param(request, "dry_run")
    memory, sender = services_of(request).memory_transfer, sender_of(request)
    with memory.archive_path(sender) as archive:
        await _receive(request, archive)
        done = await memory.bring(archive, sender, kind=kind, settings=settings, dry_run=dry_run)
    return json_response(
        MemoryImported(**{name: getattr(done, name) for name in MemoryImported.__struct_fields__})
    )


ROUTES = (
    ScopedRoute("/api/memory/export", export, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/import", bring, methods=["POST"], scope=TokenScope.OWNER),
)


async def _pieces(file: AsyncFile[bytes]) -> AsyncIterator[bytes]:
    async with file:
        while piece := await file.read(PIECE_BYTES):
            yield piece


async def _receive(request: Request, archive: Path) -> None:
    """Write the body to a file. Refused with ``too_large`` as soon as the limit is exceeded."""
    size = 0
    async with await anyio.open_file(archive, "wb") as file:
        async for piece in request.stream():
            size += len(piece)
            if size > MAX_ARCHIVE:
                raise refusal(ErrorCode.TOO_LARGE)
            await file.write(piece)
    if not size:
        raise InvalidField((), "The body is an archive.")
