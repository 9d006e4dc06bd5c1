"""Background tasks over HTTP: of the blocks that one may read, with their output, and ended by who operates them."""

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import anyio
import httpx
import pytest

from tests.background_tasks import begin_task
from tests.other_users import GUEST, HEADER, Visitors, share
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.sandbox.detached_program import ExitRecord, OutputFile

from .conftest import Environment, started_environment, until

pytestmark = pytest.mark.anyio

UNSEEN = ("main/11111111", "garden/11111111", "..%2Ftasks%2Fmain/11111111", "garden/..%2Fmain%2F11111111")
"""Tasks of a block that is not shared, and paths to them."""

OPERATOR = Identity(id="operator", scope=TokenScope.OPERATE)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Environment]:
    """``garden`` is shared with two people, ``main`` with nobody."""
    async with started_environment(Visitors(GUEST, OPERATOR)) as env:
        await env.terminal.create_block("garden")
        await share(env.bus, "chat", subject="guest", block="garden")
        await share(env.bus, "operate", subject="operator", block="garden")
        yield env


def client(env: Environment, who: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=env.url, headers={HEADER: who}, timeout=60)


async def test_a_task_is_shown_with_its_output_and_ended(env: Environment) -> None:
    """Its command and output without control characters, and not its environment. Ending waits until it has ended."""
    program, lock = begin_task(env.platform.home.path, "main", "0a1b0a1b", "make", "test")
    OutputFile(program.folder).add(b"one\n\x1b]0;title\x07two\n")
    [listed] = (await env.http.get("/api/tasks")).json()["tasks"]
    assert (listed["id"], listed["block"], listed["state"]) == ("0a1b0a1b", "main", "running")
    assert listed["command"] == "make test"
    shown = (await env.http.get("/api/tasks/main/0a1b0a1b")).json()
    assert (
        shown["output"].startswith("one\n")
        and "\x1b" not in shown["output"]
        and "not shown" not in str(shown)
    )

    async def supervise() -> None:
        async def asked() -> bool:
            return program.cancel_reason() == "cancelled"

        await until(asked)
        program.write_exit(ExitRecord(at=datetime.now(UTC), killed="cancelled"))
        os.close(lock)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(supervise)
        ended = await env.http.post("/api/tasks/main/0a1b0a1b/stop")
    assert ended.status_code == 200
    assert (ended.json()["state"], ended.json()["killed"]) == ("ended", "cancelled")
    again = await env.http.post("/api/tasks/main/0a1b0a1b/stop")
    assert again.json()["state"] == "ended", "a task that has ended does not change"


async def test_only_tasks_of_shared_blocks_are_there(env: Environment) -> None:
    """404 for any other, also by a path; 403 for ending one without operating its block."""
    home = env.platform.home.path
    _, mine = begin_task(home, "main", "11111111", "private")
    garden, theirs = begin_task(home, "garden", "22222222", "shared")
    for who in ("guest", "operator"):
        async with client(env, who) as http:
            assert [one["id"] for one in (await http.get("/api/tasks")).json()["tasks"]] == ["22222222"]
            for path in UNSEEN:
                assert (await http.get(f"/api/tasks/{path}")).status_code == 404
                assert (await http.post(f"/api/tasks/{path}/stop")).status_code in (403, 404)
    async with client(env, "guest") as http:
        assert (await http.post("/api/tasks/garden/22222222/stop")).status_code == 403
    assert garden.cancel_reason() == "" and garden.status() == "running"
    os.close(mine)
    os.close(theirs)
