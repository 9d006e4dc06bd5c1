"""The search of memory, and its chunks with their links, under ``/api/memory``. Only for the owner."""

from typing import cast, get_args

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.memory.chunks import (
    MEMORY_CHUNK,
    MEMORY_CHUNKS,
    MEMORY_FORGET,
    MEMORY_LINKED,
    FindLinked,
    ForgetChunk,
    GetChunk,
    ListChunks,
)
from trunkline.contracts.memory.client import SELF
from trunkline.contracts.memory.search import MEMORY_SEARCH, PassageKind, SearchMemory
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import (
    block_param,
    bool_param,
    choice_param,
    datetime_param,
    int_param,
    required_param,
)
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.memory_schemas import (
    ChunkList,
    ChunkNeighbours,
    MemoryCommit,
    MemorySearchResult,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

MOST_HITS, DEFAULT_HITS = 1_000, 10
MOST_CHUNKS, DEFAULT_CHUNKS, LARGEST_OFFSET = 1_000, 100, 999_999_999


async def search(request: Request) -> Response:
    """``GET /api/memory/search?query=&names=&path=&kind=&tag=&speaker=&conversation=&since=&until=&limit=``"""
    kind = choice_param(request, "kind", get_args(PassageKind))
    query = SearchMemory(
        query=required_param(request, "query"),
        path=request.query_params.get("path", ""),
        kind="filename" if bool_param(request, "names") else "content",
        kinds=() if kind is None else (cast("PassageKind", kind),),
        tags=tuple(filter(None, request.query_params.getlist("tag"))),
        speaker=request.query_params.get("speaker", ""),
        conversation=request.query_params.get("conversation", ""),
        since=datetime_param(request, "since"),
        until=datetime_param(request, "until"),
        limit=int_param(request, "limit", DEFAULT_HITS, least=1, most=MOST_HITS),
    )
    found = await services_of(request).memory.query(MEMORY_SEARCH, query, sender_of(request))
    return json_response(MemorySearchResult(hits=found.hits, searched=found.searched))


async def list_chunks(request: Request) -> Response:
    """``GET /api/memory/chunks?block=&tag=&type=&conversation=&after=&before=&archived=&limit=&offset=``"""
    query = ListChunks(
        actor=SELF,
        block=block_param(request, "block"),
        tags=tuple(filter(None, request.query_params.getlist("tag"))),
        chunk_type=request.query_params.get("type") or None,
        conversation_id=request.query_params.get("conversation") or None,
        created_after=datetime_param(request, "after"),
        created_before=datetime_param(request, "before"),
        archived=bool_param(request, "archived"),
        limit=int_param(request, "limit", DEFAULT_CHUNKS, least=1, most=MOST_CHUNKS),
        offset=int_param(request, "offset", 0, least=0, most=LARGEST_OFFSET),
    )
    found = await services_of(request).memory.query(MEMORY_CHUNKS, query, sender_of(request))
    return json_response(ChunkList(chunks=found.chunks, total=found.total))


async def get_chunk(request: Request) -> Response:
    """``GET /api/memory/chunks/{id}``"""
    query = GetChunk(id=request.path_params["id"], actor=SELF, archived=True)
    found = (await services_of(request).memory.query(MEMORY_CHUNK, query, sender_of(request))).chunk
    if found is None:
        raise refusal(ErrorCode.NOT_FOUND)
    return json_response(found)


async def forget(request: Request) -> Response:
    """``DELETE /api/memory/chunks/{id}``; history keeps the text until a purge."""
    command = ForgetChunk(id=request.path_params["id"], actor=SELF)
    done = await services_of(request).memory.change(MEMORY_FORGET, command, sender_of(request))
    return json_response(MemoryCommit(version=done.version, paths=done.paths))


async def neighbours(request: Request) -> Response:
    """``GET /api/memory/chunks/{id}/links?limit=``"""
    limit = int_param(request, "limit", DEFAULT_CHUNKS, least=1, most=MOST_CHUNKS)
    query = FindLinked(id=request.path_params["id"], actor=SELF, limit=limit)
    found = await services_of(request).memory.query(MEMORY_LINKED, query, sender_of(request))
    return json_response(ChunkNeighbours(links=found.links))


ROUTES = (
    ScopedRoute("/api/memory/search", search, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/chunks", list_chunks, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/chunks/{id}", get_chunk, methods=["GET"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/chunks/{id}", forget, methods=["DELETE"], scope=TokenScope.OWNER),
    ScopedRoute("/api/memory/chunks/{id}/links", neighbours, methods=["GET"], scope=TokenScope.OWNER),
)
