"""``GET /api/conversations/{id}/file``: downloads a file of a conversation, such as one that its agent gave to the
person."""

from collections.abc import AsyncIterator
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.paths import conversation_of_attachment
from trunkline.contracts.gateway.messages import FilePiece, GetFile
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.scoped_route import ScopedRoute


async def download(request: Request) -> Response:
    """``GET /api/conversations/{id}/file?path=``"""
    path = request.query_params.get("path", "")
    if conversation_of_attachment(path) != request.path_params["id"]:
        raise refusal(ErrorCode.NOT_FOUND)
    first = await _piece(request, path, 0)
    name = path.rpartition("/")[2].partition("-")[2]  # without the beginning of the content's hash
    headers = {
        "content-length": str(first.size),
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "cache-control": "no-store",
    }
    pieces = _pieces(request, path, first)
    return StreamingResponse(pieces, media_type="application/octet-stream", headers=headers)


ROUTES = (ScopedRoute("/api/conversations/{id}/file", download, methods=["GET"], scope=TokenScope.READ),)


async def _piece(request: Request, path: str, offset: int) -> FilePiece:
    asked = GetFile(path=path, offset=offset)
    return await services_of(request).conversations.file(asked, sender_of(request))


async def _pieces(request: Request, path: str, first: FilePiece) -> AsyncIterator[bytes]:
    """Yield the file. The sender's right is checked for each piece."""
    piece, sent = first, 0
    while piece.data:
        yield piece.data
        sent += len(piece.data)
        if sent >= first.size:
            return
        piece = await _piece(request, path, sent)
