"""Documents for memory, under ``/api/memory/documents``. Only for the owner, with a token for all blocks."""

from functools import partial
from pathlib import Path

import anyio
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.workers.gateway.document_service import checked_name
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.client_watch import until_gone
from trunkline.workers.gateway.http.multipart_reader import file_field, pieces_of, read_form
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.memory_schemas import MemoryDocument
from trunkline.workers.gateway.http.scoped_route import ScopedRoute


async def add(request: Request) -> Response:
    """``POST /api/memory/documents``: reading ends when the client disconnects."""
    documents, sender = services_of(request).documents, sender_of(request)
    with documents.upload_folder(sender) as folder:
        async with read_form(request, max_file=documents.max_size) as form:
            file = file_field(form, "file", max_size=documents.max_size)
            source = folder / checked_name(file.filename or "")
            await _save(file, source)
        stored = await until_gone(request, partial(documents.add, source, sender))
    return json_response(
        MemoryDocument(
            path=stored.path, added=stored.added, title=stored.facts.title, pages=stored.facts.pages
        )
    )


ROUTES = (ScopedRoute("/api/memory/documents", add, methods=["POST"], scope=TokenScope.OWNER),)


async def _save(file: UploadFile, target: Path) -> None:
    async with await anyio.open_file(target, "xb") as copy:
        async for piece in pieces_of(file):
            await copy.write(piece)
