"""Blocks under ``/api/blocks``: make, list, show, archive, restore, delete."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trunkline.gateway.http.bodies import flag, read_json
from trunkline.gateway.http.parts import parts_of, sender_of
from trunkline.gateway.http.replies import reply
from trunkline.gateway.http.schemas import ArchivedBlockLine, Blocks, BlockState, NewBlock
from trunkline.messages.blocks import Block, CreateBlock, DeleteBlock


async def list_blocks(request: Request) -> Response:
    """``GET /api/blocks?archived=``"""
    found = await parts_of(request).blocks.listed(archived=flag(request, "archived"))
    archived = tuple(
        ArchivedBlockLine(name=one.name, archive=one.archive, archived_at=one.archived_at)
        for one in found.archived
    )
    return reply(Blocks(blocks=tuple(_state(block) for block in found.blocks), archived=archived))


async def create(request: Request) -> Response:
    """``POST /api/blocks``"""
    new = await read_json(request, NewBlock)
    block = await parts_of(request).blocks.create(
        CreateBlock(name=new.name, config=new.config), _actor(request)
    )
    return reply(_state(block), 201)


async def show(request: Request) -> Response:
    """``GET /api/blocks/{name}``"""
    return reply(_state(await parts_of(request).blocks.show(request.path_params["name"])))


async def archive(request: Request) -> Response:
    """``POST /api/blocks/{name}/archive``"""
    await parts_of(request).blocks.archive(request.path_params["name"], _actor(request))
    return Response(status_code=204)


async def restore(request: Request) -> Response:
    """``POST /api/blocks/{name}/restore``"""
    return reply(_state(await parts_of(request).blocks.restore(request.path_params["name"], _actor(request))))


async def delete(request: Request) -> Response:
    """``DELETE /api/blocks/{name}?archived=``"""
    wish = DeleteBlock(name=request.path_params["name"], archived=flag(request, "archived"))
    await parts_of(request).blocks.delete(wish, _actor(request))
    return Response(status_code=204)


ROUTES = (
    Route("/api/blocks", list_blocks, methods=["GET"]),
    Route("/api/blocks", create, methods=["POST"]),
    Route("/api/blocks/{name}", show, methods=["GET"]),
    Route("/api/blocks/{name}/archive", archive, methods=["POST"]),
    Route("/api/blocks/{name}/restore", restore, methods=["POST"]),
    Route("/api/blocks/{name}", delete, methods=["DELETE"]),
)


def _actor(request: Request) -> str:
    return sender_of(request).identity.id


def _state(block: Block) -> BlockState:
    return BlockState(
        name=block.name,
        status=block.pulse.status,
        config=block.config,
        created_at=block.created_at,
        conversations=block.conversations,
        current_task=block.pulse.current_task,
        error=block.pulse.error,
    )
