"""Agents and their tasks over HTTP: of the blocks that one may read, and ended by who operates them."""

from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import pytest

from tests.other_users import GUEST, HEADER, Visitors, share
from trunkline.contracts.agents.messages import AgentTask, LastingAgent
from trunkline.contracts.agents.subjects import AGENT_BUCKET, TASK_BUCKET
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.turns.parent_turn import ParentTurn

from .conftest import Environment, started_environment

pytestmark = pytest.mark.anyio

OPERATOR = Identity(id="operator", scope=TokenScope.OPERATE)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Environment]:
    """``garden`` is shared with two people, ``main`` with nobody. Each block has a task and a lasting agent."""
    async with started_environment(Visitors(GUEST, OPERATOR)) as env:
        await env.terminal.create_block("garden")
        await share(env.bus, "chat", subject="guest", block="garden")
        await share(env.bus, "operate", subject="operator", block="garden")
        for block in ("main", "garden"):
            task, agent = a_task(block), an_agent(block)
            await env.bus.kv(TASK_BUCKET).create(task.id, task)
            await env.bus.kv(AGENT_BUCKET).create(agent.id, agent)
        yield env


def a_task(block: str) -> AgentTask:
    parent = ParentTurn(
        block=block,
        conversation=f"conv_{block}",
        turn=f"turn_{block}",
        call="call_1",
        agent="finder",
        root=f"turn_{block}",
        root_conversation=f"conv_{block}",
        types=("finder",),
    )
    return AgentTask(
        id=f"task_{block}",
        block=block,
        conversation=f"conv_task_{block}",
        parent=parent,
        awaited=True,
        deadline=utc_now() + timedelta(hours=1),
        state="done",
        ended_at=utc_now(),
    )


def an_agent(block: str) -> LastingAgent:
    return LastingAgent(
        id=f"agent_{block}",
        name="helper",
        block=block,
        conversation=f"conv_agent_{block}",
        parent_conversation=f"conv_{block}",
        created_by=f"turn_{block}",
        types=("",),
    )


def client(env: Environment, who: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=env.url, headers={HEADER: who}, timeout=60)


async def test_agents_are_listed_by_block(env: Environment) -> None:
    """The owner sees all of them; anyone else those of the blocks that are shared."""
    found = (await env.http.get("/api/agents")).json()
    assert {one["id"] for one in found["tasks"]} == {"task_main", "task_garden"}
    task = next(one for one in found["tasks"] if one["block"] == "main")
    assert (task["agent"], task["state"], task["depth"]) == ("finder", "done", 1)
    assert (task["parent_turn"], task["conversation"]) == ("turn_main", "conv_task_main")
    assert {one["id"] for one in found["agents"]} >= {"agent_main"}
    async with client(env, "guest") as http:
        seen = (await http.get("/api/agents")).json()
    assert [one["id"] for one in seen["tasks"]] == ["task_garden"]
    assert {one["block"] for one in seen["agents"]} <= {"garden"}


async def test_an_agent_is_ended_by_who_operates_its_block(env: Environment) -> None:
    """An agent of a block that is not shared does not exist, and who may only chat ends none."""
    async with client(env, "guest") as guest, client(env, "operator") as operator:
        assert (await guest.post("/api/agents/agent_garden/end")).status_code == 403
        assert (await operator.post("/api/agents/agent_main/end")).status_code == 404
        assert (await operator.post("/api/agents/none/end")).status_code == 404
        assert (await operator.post("/api/agents/%C3%96j/end")).status_code == 404
        assert (await operator.post("/api/agents/agent_garden/end")).status_code == 204
        assert (await operator.post("/api/agents/task_garden/end")).status_code == 204
    found = (await env.http.get("/api/agents")).json()
    assert {one["id"] for one in found["agents"]} == {"agent_main"}
