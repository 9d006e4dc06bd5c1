"""Background tasks under ``/api/tasks``: their state and output, and the way to end them."""

from typing import Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from trunkline._util.text import printable
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.sandbox.detached_program import DetachedProgram
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.task_schemas import TaskDetail, TaskItem, TaskList
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.task_service import BlockTask

LINES, MOST_CHARACTERS = 500, 200_000
"""Of the end of the output, which are shown."""


async def list_tasks(request: Request) -> Response:
    """``GET /api/tasks``"""
    found = await services_of(request).tasks.list_tasks(sender_of(request))
    return json_response(TaskList(tasks=tuple([TaskItem(**await _facts(one)) for one in found])))


async def show(request: Request) -> Response:
    """``GET /api/tasks/{block}/{id}``"""
    block, id = request.path_params["block"], request.path_params["id"]
    return await _detail(await services_of(request).tasks.find(block, id, sender_of(request)))


async def stop(request: Request) -> Response:
    """``POST /api/tasks/{block}/{id}/stop``"""
    block, id = request.path_params["block"], request.path_params["id"]
    return await _detail(await services_of(request).tasks.stop(block, id, sender_of(request)))


ROUTES = (
    ScopedRoute("/api/tasks", list_tasks, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/tasks/{block}/{id}", show, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/tasks/{block}/{id}/stop", stop, methods=["POST"], scope=TokenScope.OPERATE),
)


async def _detail(task: BlockTask) -> Response:
    output = await anyio.to_thread.run_sync(task[1].tail, LINES, MOST_CHARACTERS)
    return json_response(TaskDetail(**await _facts(task), output=printable(output)))


async def _facts(task: BlockTask) -> dict[str, Any]:
    return await anyio.to_thread.run_sync(_read, *task)


def _read(block: str, program: DetachedProgram) -> dict[str, Any]:
    state = program.status()
    order, ending = program.spec(), program.exit_record()
    facts: dict[str, Any] = {
        "id": program.name,
        "block": block,
        "state": state,
        "command": printable(" ".join(" ".join(order.argv).split())) if order else "",
        "started": order.at if order else None,
    }
    if ending is not None:
        facts |= {
            "ended": ending.at,
            "exit_code": ending.exit_code,
            "killed": ending.killed,
            "fault": printable(ending.fault),
        }
    return facts
