"""The files of memory and their history under ``/api/memory``. Only for the owner, with a token for all blocks.

A path of memory is a parameter and never a part of the URL, so no server on the way changes it.
"""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.memory.client import SELF
from trunkline.contracts.memory.files import (
    MEMORY_DELETE,
    MEMORY_LIST,
    MEMORY_MOVE,
    MEMORY_READ,
    DeleteMemory,
    ListMemory,
    MoveMemory,
    ReadMemory,
)
from trunkline.contracts.memory.history import (
    MEMORY_BLAME,
    MEMORY_DIFF,
    MEMORY_HISTORY,
    MEMORY_REVERT,
    BlameMemory,
    DiffMemory,
    MemoryHistory,
    RevertMemory,
)
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import bool_param, int_param, read_json, required_param
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.memory_schemas import (
    MemoryAuthors,
    MemoryCommit,
    MemoryDiff,
    MemoryDraft,
    MemoryFolder,
    MemoryMove,
    MemoryPreview,
    MemoryRestored,
    MemoryRevert,
    MemoryRevision,
    MemoryRevisions,
    MemoryText,
    MemoryWrite,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

MOST_REVISIONS, DEFAULT_REVISIONS = 1_000, 50
LARGEST_LINE = 999_999_999


async def list_folder(request: Request) -> Response:
    """``GET /api/memory/files?path=&recursive=``"""
    query = ListMemory(path=request.query_params.get("path", ""), recursive=bool_param(request, "recursive"))
    found = await services_of(request).memory.query(MEMORY_LIST, query, sender_of(request))
    return json_response(MemoryFolder(entries=found.entries))


async def read(request: Request) -> Response:
    """``GET /api/memory/file?path=&version=``"""
    query = ReadMemory(path=required_param(request, "path"), version=_version(request, "version"))
    found = await services_of(request).memory.query(MEMORY_READ, query, sender_of(request))
    return json_response(
        MemoryText(path=found.path, content=found.content, hash=found.hash, modified_at=found.modified_at)
    )


async def write(request: Request) -> Response:
    """``PUT /api/memory/file``"""
    new, memory = await read_json(request, MemoryWrite), services_of(request).memory
    version = await memory.write(new.path, new.content, new.expected, sender_of(request))
    return json_response(MemoryCommit(version=version, paths=(new.path,)))


async def preview(request: Request) -> Response:
    """``POST /api/memory/preview``"""
    draft = await read_json(request, MemoryDraft)
    detail, hash = await services_of(request).memory.preview(draft.path, draft.content, sender_of(request))
    return json_response(MemoryPreview(detail=detail, hash=hash))


async def move(request: Request) -> Response:
    """``POST /api/memory/move``"""
    new = await read_json(request, MemoryMove)
    command = MoveMemory(source=new.source, target=new.target, actor=SELF, expected=new.expected)
    done = await services_of(request).memory.change(MEMORY_MOVE, command, sender_of(request))
    return json_response(MemoryCommit(version=done.version, paths=done.paths))


async def delete(request: Request) -> Response:
    """``DELETE /api/memory/file?path=&expected=``; history keeps the content."""
    path = required_param(request, "path")
    if not path.strip("/."):
        raise InvalidField("path", "It names a file or folder.")
    command = DeleteMemory(path=path, actor=SELF, expected=_version(request, "expected"))
    done = await services_of(request).memory.change(MEMORY_DELETE, command, sender_of(request))
    return json_response(MemoryCommit(version=done.version, paths=done.paths))


async def history(request: Request) -> Response:
    """``GET /api/memory/history?path=&limit=``"""
    limit = int_param(request, "limit", DEFAULT_REVISIONS, least=1, most=MOST_REVISIONS)
    query = MemoryHistory(path=request.query_params.get("path", ""), limit=limit)
    found = await services_of(request).memory.query(MEMORY_HISTORY, query, sender_of(request))
    revisions = tuple(
        MemoryRevision(**{name: getattr(one, name) for name in MemoryRevision.__struct_fields__})
        for one in found.changes
    )
    return json_response(MemoryRevisions(revisions=revisions))


async def diff(request: Request) -> Response:
    """``GET /api/memory/diff?path=&old=&new=``"""
    query = DiffMemory(
        path=request.query_params.get("path", ""),
        old=_version(request, "old"),
        new=_version(request, "new"),
    )
    found = await services_of(request).memory.query(MEMORY_DIFF, query, sender_of(request))
    return json_response(MemoryDiff(**{name: getattr(found, name) for name in MemoryDiff.__struct_fields__}))


async def blame(request: Request) -> Response:
    """``GET /api/memory/blame?path=&version=&first=&last=``"""
    last = int_param(request, "last", 0, least=1, most=LARGEST_LINE)
    query = BlameMemory(
        path=required_param(request, "path"),
        version=_version(request, "version"),
        first=int_param(request, "first", 1, least=1, most=LARGEST_LINE),
        last=last or None,
    )
    found = await services_of(request).memory.query(MEMORY_BLAME, query, sender_of(request))
    return json_response(MemoryAuthors(path=found.path, version=found.version, spans=found.spans))


async def revert(request: Request) -> Response:
    """``POST /api/memory/revert``"""
    undo = await read_json(request, MemoryRevert)
    if undo.version is not None and undo.to is not None:
        raise InvalidField(("to",), "Give either version or to.")
    if not undo.path.strip("/.") and undo.version is None:
        raise InvalidField(("path",), "Name the file or folder, or the version to undo.")
    command = RevertMemory(path=undo.path, actor=SELF, version=undo.version, to=undo.to)
    done = await services_of(request).memory.change(MEMORY_REVERT, command, sender_of(request))
    return json_response(MemoryRestored(version=done.version, undone=done.undone, paths=done.paths))


ROUTES = (
    ScopedRoute("/api/memory/files", list_folder, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/file", read, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/file", write, methods=["PUT"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/file", delete, methods=["DELETE"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/preview", preview, methods=["POST"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/move", move, methods=["POST"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/history", history, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/diff", diff, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/blame", blame, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/revert", revert, methods=["POST"], scope=TokenScope.OWNER),
)


def _version(request: Request, name: str) -> str | None:
    """Return a version of the query; None without one, and for an empty field of a form."""
    return request.query_params.get(name) or None
