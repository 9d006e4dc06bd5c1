"""The agents that work for other agents in the web app: the tree of their tasks on a phone, and the end of one."""

from datetime import timedelta

import pytest
from playwright.async_api import Browser, expect

from trunkline.contracts.agents.messages import AgentTask, LastingAgent
from trunkline.contracts.agents.subjects import AGENT_BUCKET, TASK_BUCKET
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.turns.parent_turn import ParentTurn
from trunkline.testing.platform import Platform

from .conftest import visit
from .test_pages import PHONE, axe, check_page

__all__ = ["axe"]

pytestmark = pytest.mark.anyio


def a_task(id: str, agent: str, parent: str, depth: int) -> AgentTask:
    return AgentTask(
        id=id,
        block="main",
        conversation=f"conv_{id}",
        parent=ParentTurn(
            block="main",
            conversation=f"conv_{parent}",
            turn=parent,
            call="call_1",
            agent=agent,
            root="turn_person",
            root_conversation="conv_turn_person",
            types=("",) * depth,
        ),
        awaited=True,
        deadline=utc_now() + timedelta(hours=1),
        state="done",
        ended_at=utc_now(),
    )


async def test_tasks_are_a_tree_and_an_agent_is_ended(browser: Browser, running: Platform, axe: str) -> None:
    """Each task is below the one that it works for, its cost is looked up, and an agent ends after a question."""
    for task in (
        a_task("turn_plan", "planner", "turn_person", 1),
        a_task("turn_find", "finder", "turn_plan", 2),
    ):
        await running.bus.kv(TASK_BUCKET).create(task.id, task)
    agent = LastingAgent(
        id="agent_helper",
        name="helper",
        block="main",
        conversation="conv_agent_helper",
        parent_conversation="conv_turn_person",
        created_by="turn_person",
        types=("",),
    )
    await running.bus.kv(AGENT_BUCKET).create(agent.id, agent)
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open("#/activity/agents")
        await expect(page.locator(".agent-tasks .agent-tasks").get_by_text("finder")).to_be_visible()
        await page.get_by_role("button", name="What it cost").first.click()
        await expect(page.get_by_text("0.0000 US$ in the last 30 days")).to_be_visible()
        await check_page(page, axe)
        await page.get_by_role("button", name="End", exact=True).click()
        await page.get_by_role("dialog").get_by_role("button", name="End").click()
        await expect(page.get_by_text("helper")).to_have_count(0)
        assert found.problems == []
