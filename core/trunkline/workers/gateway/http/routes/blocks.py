"""Blocks under ``/api/blocks``: create, list, show, change, start, stop, reset, archive, restore and delete; and their
templates under ``/api/block-templates``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.blocks.messages import (
    Block,
    ChangeBlock,
    CreateBlock,
    DeleteBlock,
    ResetBlock,
    StopBlock,
)
from trunkline.runtime.block_access import BlockRights
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import bool_param, read_json, read_optional_json
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.block_schemas import (
    ArchivedBlockItem,
    BlockChanges,
    BlockState,
    BlockStates,
    BlockTemplateItem,
    BlockTemplateItems,
    NewBlock,
    ResetRequest,
    StopRequest,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute


async def list_blocks(request: Request) -> Response:
    """``GET /api/blocks?archived=``"""
    archives = bool_param(request, "archived")
    found = await services_of(request).blocks.list_blocks(sender_of(request), archived=archives)
    rights = await _rights(request)
    archived = tuple(
        ArchivedBlockItem(name=one.name, archive=one.archive, archived_at=one.archived_at)
        for one in found.archived
    )
    return json_response(
        BlockStates(blocks=tuple(_state(block, rights) for block in found.blocks), archived=archived)
    )


async def create(request: Request) -> Response:
    """``POST /api/blocks``"""
    new = await read_json(request, NewBlock)
    block = await services_of(request).blocks.create(
        CreateBlock(name=new.name, config=new.config, template=new.template), sender_of(request)
    )
    return json_response(_state(block, await _rights(request)), 201)


async def list_templates(request: Request) -> Response:
    """``GET /api/block-templates``"""
    found = await services_of(request).blocks.list_templates(sender_of(request))
    items = tuple(BlockTemplateItem(**msgspec.structs.asdict(one)) for one in found.templates)
    return json_response(BlockTemplateItems(templates=items))


async def show(request: Request) -> Response:
    """``GET /api/blocks/{name}``"""
    name = request.path_params["name"]
    return await _answer(request, await services_of(request).blocks.get_block(name, sender_of(request)))


async def change(request: Request) -> Response:
    """``PATCH /api/blocks/{name}``"""
    command = await read_json(request, BlockChanges)
    return await _answer(request, await _changed(request, dict(_dotted(command.config))))


async def start(request: Request) -> Response:
    """``POST /api/blocks/{name}/start``"""
    return await _answer(request, await _changed(request, {"enabled": None}))


async def stop(request: Request) -> Response:
    """``POST /api/blocks/{name}/stop``"""
    command = await read_optional_json(request, StopRequest)
    stop = StopBlock(name=request.path_params["name"], finish=command.finish)
    return await _answer(request, (await services_of(request).blocks.stop(stop, sender_of(request))).block)


async def reset(request: Request) -> Response:
    """``POST /api/blocks/{name}/reset``"""
    command = await read_optional_json(request, ResetRequest)
    reset = ResetBlock(name=request.path_params["name"], hard=command.hard)
    return await _answer(request, await services_of(request).blocks.reset(reset, sender_of(request)))


async def archive(request: Request) -> Response:
    """``POST /api/blocks/{name}/archive``"""
    await services_of(request).blocks.archive(request.path_params["name"], sender_of(request))
    return Response(status_code=204)


async def restore(request: Request) -> Response:
    """``POST /api/blocks/{name}/restore``"""
    name = request.path_params["name"]
    return await _answer(request, await services_of(request).blocks.restore(name, sender_of(request)))


async def delete(request: Request) -> Response:
    """``DELETE /api/blocks/{name}?archived=``"""
    command = DeleteBlock(name=request.path_params["name"], archived=bool_param(request, "archived"))
    await services_of(request).blocks.delete(command, sender_of(request))
    return Response(status_code=204)


ROUTES = (
    ScopedRoute("/api/blocks", list_blocks, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/blocks", create, methods=["POST"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/block-templates", list_templates, methods=["GET"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/blocks/{name}", show, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/blocks/{name}", change, methods=["PATCH"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/blocks/{name}/start", start, methods=["POST"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/blocks/{name}/stop", stop, methods=["POST"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/blocks/{name}/reset", reset, methods=["POST"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/blocks/{name}/archive", archive, methods=["POST"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/blocks/{name}/restore", restore, methods=["POST"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/blocks/{name}", delete, methods=["DELETE"], scope=TokenScope.OWNER),
)


async def _changed(request: Request, changes: dict[str, Any]) -> Block:
    command = ChangeBlock(name=request.path_params["name"], changes=changes)
    try:
        return await services_of(request).blocks.change(command, sender_of(request))
    except InvalidField as error:
        raise InvalidField(("config", *error.field), error.reason) from error


def _dotted(config: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaf values of nested objects with dotted keys; ``block.toml`` has tables for these
    objects."""
    for name, value in config.items():
        if isinstance(value, dict) and value:
            yield from _dotted(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


async def _rights(request: Request) -> BlockRights:
    return await services_of(request).access.rights_of(sender_of(request).identity)


async def _answer(request: Request, block: Block) -> Response:
    return json_response(_state(block, await _rights(request)))


def _state(block: Block, rights: BlockRights) -> BlockState:
    return BlockState(
        name=block.name,
        access=rights.highest(block.name),
        status=block.pulse.status,
        config=block.config,
        created_at=block.created_at,
        conversations=block.conversations,
        current_task=block.pulse.current_task,
        last_run=block.pulse.last_run,
        last_pulse=block.pulse.last_pulse,
        next_wake_up=block.pulse.next_wake_up,
        error=block.pulse.error,
        problem=block.problem,
    )
