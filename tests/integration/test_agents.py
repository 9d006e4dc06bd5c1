"""Agents that work for an agent: tasks, results, limits, approvals, cancels, and the whole family in one trace."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.block_client import BlockClient, stopped_at_the_end
from trunkline.contracts.agents.messages import AgentList, AgentTask
from trunkline.contracts.turns.feed_messages import ToolEnded
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.errors import ErrorCode
from trunkline.testing.platform import Platform, TurnAnswer, platform
from trunkline_bus import RemoteFault

from .approval_helpers import asking, waiting

pytestmark = pytest.mark.anyio


def call(tool: str, **arguments: Any) -> str:
    """An instruction of the scripted model."""
    return f"call:{tool} {json.dumps(arguments)}"


def program(*lines: str) -> str:
    """A program of the scripted model. Line breaks, unlike `` ;; ``, stay inside of the tasks that it contains."""
    return "\n".join(lines)


@pytest.fixture(scope="module")
async def shared(
    anyio_backend: str, provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Platform]:
    settings = asking(provider, **{"permissions.approvals": "none", "agents.max_running": 5})
    async with platform(tmp_path_factory.mktemp("agents"), config=settings) as running:
        yield running


@pytest.fixture
async def running(shared: Platform) -> AsyncIterator[BlockClient]:
    async with stopped_at_the_end(shared) as client:
        yield client


def results(answer: TurnAnswer) -> list[ToolEnded]:
    return [event for event in answer.events if isinstance(event, ToolEnded)]


async def tasks_of(client: BlockClient) -> tuple[AgentTask, ...]:
    return (await client.gateway.agents(block=client.block)).tasks


async def task_running(client: BlockClient, count: int = 1) -> tuple[AgentTask, ...]:
    """Wait until so many tasks of the block run."""
    with anyio.fail_after(60):
        while True:
            found = tuple(task for task in await tasks_of(client) if task.is_running)
            if len(found) >= count:
                return found
            await anyio.sleep(0.05)


async def all_ended(client: BlockClient) -> tuple[AgentTask, ...]:
    with anyio.fail_after(60):
        while True:
            found = await tasks_of(client)
            if found and not any(task.is_running for task in found):
                return found
            await anyio.sleep(0.05)


def typed(client: BlockClient, name: str, text: str) -> None:
    folder = client.platform.home.memory / "blocks" / client.block / "agent-types"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)


async def test_a_task_is_a_turn_whose_answer_is_the_result(running: BlockClient) -> None:
    """The call waits without a worker, and the model receives the agent's last answer as data."""
    answer = await running.say(program(call("agent_run", task="say:forty-two"), "quote"))
    assert "forty-two" in answer.text and answer.ended.reason == "stop"
    (task,) = await all_ended(running)
    assert (task.state, task.parent.turn, task.parent.types) == ("done", answer.accepted.turn, ("",))
    child = await running.gateway.conversation(task.conversation)
    assert [message.content for message in child.messages] == ["say:forty-two", "forty-two"]
    (listed,) = (await running.gateway.agents(conversation=answer.accepted.conversation)).tasks
    assert listed == task


async def test_tasks_of_one_answer_run_at_the_same_time(running: BlockClient) -> None:
    """Each waits for the others, so that one after the other would never end."""
    parts = [json.dumps({"task": f"slow:20:100\nsay:part {number}"}) for number in range(3)]
    accepted = await running.send(
        program(f"parallel:agent_run {parts[0]} agent_run {parts[1]} agent_run {parts[2]}", "quote")
    )
    assert len(await task_running(running, 3)) == 3
    answer = await running.answer(accepted)
    assert all(f"part {number}" in answer.text for number in range(3))


async def test_a_task_that_fails_is_an_error_for_the_model(running: BlockClient) -> None:
    """The parent's turn goes on with the reason."""
    answer = await running.say(program(call("agent_run", task="status:401"), "say:I go on"))
    (result,) = results(answer)
    assert result.error and "The agent agent failed" in result.output and "I go on" in answer.text
    (task,) = await all_ended(running)
    assert task.state == "failed"


async def test_a_cancel_reaches_all_descendants(running: BlockClient) -> None:
    """The parent, its task, and the task of that one end."""
    inner = program(call("agent_run", task="stall:3"), "quote")
    accepted = await running.send(program(call("agent_run", task=inner), "quote"))
    found = await task_running(running, 2)
    assert sorted(task.parent.depth for task in found) == [1, 2]
    assert {task.parent.root for task in found} == {accepted.turn}
    await running.gateway.cancel(accepted.turn)
    answer = await running.answer(accepted)
    assert answer.ended.reason == "cancelled"
    assert {task.state for task in await all_ended(running)} == {"cancelled"}


async def test_a_stop_of_the_block_ends_a_turn_that_waits_for_an_agent(running: BlockClient) -> None:
    accepted = await running.send(program(call("agent_run", task="stall:3"), "quote"))
    (task,) = await task_running(running)
    stopped = await running.gateway.stop_block(running.block)
    assert {accepted.turn, task.id} <= set(stopped.cancelled)
    assert {one.state for one in await all_ended(running)} == {"cancelled"}
    await running.gateway.change_block(running.block, {"enabled": True})


async def test_a_task_ends_at_its_deadline(running: BlockClient) -> None:
    """The parent learns so and goes on."""
    answer = await running.say(program(call("agent_run", task="hang", timeout=1), "say:late"))
    (result,) = results(answer)
    assert result.error_kind == "timeout" and "did not end in time" in result.output
    (task,) = await all_ended(running)
    assert task.state == "timed_out"


async def test_an_agent_has_no_more_rights_than_its_type(running: BlockClient) -> None:
    """A tool that the type does not name is refused, and the other one runs."""
    typed(
        running,
        "reader",
        "---\ndescription: Reads.\ntools: [list_directory, read_file]\n---\nRead only.\n",
    )
    task = program(call("write_file", path="a.md", content="x"), call("list_directory", path="."), "quote")
    answer = await running.say(program(call("agent_run", task=task, type="reader"), "quote"))
    assert not (running.workspace / "a.md").exists()
    (one,) = await all_ended(running)
    assert one.parent.types == ("reader",) and one.state == "done"
    journal = [
        entry
        async for stored in running.platform.bus.history(JOURNAL, after=0, turn=one.id)
        for entry in stored.data.entries
    ]
    request = journal[0].request  # type: ignore[union-attr]
    assert request.permissions and "tools:read_file" in request.permissions
    assert "Read only." in str(request.instructions) and "reader" in answer.text + str(request.parent)


@pytest.mark.parametrize(
    ("task", "why"),
    [
        (call("agent_run", task="say:x", type="missing"), "There is no type 'missing'"),
        (call("agent_run", task="  "), "A task has 1 to"),
        (call("agent_run", task="say:x", timeout=-1), "a number of seconds"),
        (call("query_agent", name="nobody", prompt="say:x"), "no agent 'nobody'"),
        (call("terminate_agent", name="main"), "no agent 'main'"),
        (call("create_agent", name="Not A Name"), "named by a-z"),
    ],
)
async def test_MB_T20_what_is_not_its_own_is_refused(running: BlockClient, task: str, why: str) -> None:
    """Foreign and unknown agents, and requests that make no sense, start nothing."""
    answer = await running.say(program(task, "say:on"))
    (result,) = results(answer)
    assert result.error and why in result.output, result.output
    assert await tasks_of(running) == ()


async def test_a_type_does_not_work_below_itself(running: BlockClient) -> None:
    typed(running, "digger", "---\ndescription: Digs.\n---\nDig.\n")
    inner = program(call("agent_run", task="say:deeper", type="digger"), "quote")
    answer = await running.say(program(call("agent_run", task=inner, type="digger"), "quote"))
    assert "does not work below itself" in answer.text
    assert len(await all_ended(running)) == 1


async def test_the_depth_is_limited(running: BlockClient) -> None:
    """The sixth level is refused, and its parent answers with the reason."""
    task = "say:bottom"
    for _ in range(6):
        task = program(call("agent_run", task=task), "quote")
    answer = await running.say(task)
    assert "no agent may be deeper" in answer.text
    assert max(one.parent.depth for one in await all_ended(running)) == 5


async def test_the_number_of_running_tasks_is_limited(running: BlockClient) -> None:
    parts = " ".join(f"agent_run {json.dumps({'task': 'stall:1'})}" for _ in range(6))
    accepted = await running.send(program(f"parallel:{parts}", "quote"))
    await task_running(running, 5)
    await running.gateway.cancel(accepted.turn)
    answer = await running.answer(accepted)
    refused = [one for one in results(answer) if one.error_kind == "rate_limited"]
    assert len(refused) == 1 and "which is the limit" in refused[0].output


async def test_MB_T20_a_lasting_agent_remembers_and_is_ended(running: BlockClient) -> None:
    """Create, query, message, list, end: the agent's tasks are in one conversation."""
    answer = await running.say(
        program(
            call("create_agent", name="ada", description="You count."),
            call("query_agent", name="ada", prompt="say:one"),
            call("query_agent", name="ada", prompt="say:two"),
            call("list_agents"),
            "quote",
        )
    )
    assert "- ada" in answer.text
    agents: AgentList = await running.gateway.agents(block=running.block)
    (ada,) = agents.agents
    talk = await running.gateway.conversation(ada.conversation)
    assert [message.content for message in talk.messages] == ["say:one", "one", "say:two", "two"]
    conversation = answer.accepted.conversation
    await running.say(call("message_agent", name="ada", message="stall:2"), conversation=conversation)
    (task,) = await task_running(running)
    assert not task.awaited
    ended = await running.say(
        program(call("terminate_agent", name="ada"), "quote"), conversation=conversation
    )
    assert "is ended" in ended.text
    await all_ended(running)
    assert (await running.gateway.agents(block=running.block)).agents == ()
    refused = await running.say(call("query_agent", name="ada", prompt="say:x"), conversation=conversation)
    assert results(refused)[0].error


async def test_an_agent_of_another_conversation_is_out_of_reach(running: BlockClient) -> None:
    await running.say(call("create_agent", name="ada"))
    answer = await running.say(program(call("query_agent", name="ada", prompt="say:x"), "quote"))
    assert "no agent 'ada'" in answer.text
    refused = await running.say(program(call("terminate_agent", name="ada"), "quote"))
    assert "no agent 'ada'" in refused.text


async def test_the_owner_ends_a_task_and_the_parent_goes_on(running: BlockClient) -> None:
    accepted = await running.send(program(call("agent_run", task="stall:2"), "say:on"))
    (task,) = await task_running(running)
    await running.gateway.end_agent(task.id)
    answer = await running.answer(accepted)
    assert "was cancelled" in results(answer)[0].output and answer.text.endswith("on")
    with pytest.raises(RemoteFault) as fault:
        await running.gateway.end_agent("turn_unknown")
    assert fault.value.code == ErrorCode.NOT_FOUND


async def test_an_approval_says_for_which_agent_it_is(provider: str, tmp_path: Path) -> None:
    """It reaches the owner in the child's conversation, and the parent waits for it as for anything else."""
    async with platform(tmp_path, config=asking(provider)) as running:
        task = program(call("write_file", path="a.md", content="x"), "say:written")
        accepted = await running.send(program(call("agent_run", task=task), "quote"))
        client = BlockClient(running, "main")
        (one,) = await task_running(client)
        (asked,) = await waiting(running)
        assert asked.question.startswith("For the agent agent, which works for the conversation")
        assert asked.turn == one.id
        assert (await running.gateway.turn(accepted.turn)).status == "running"
        await running.gateway.decide(asked.turn, asked.call, asked.call_hash, allow=True)
        assert "written" in (await running.answer(accepted)).text
        assert (running.home.workspace("main") / "a.md").read_text() == "x"


async def test_a_plan_gives_no_task(running: BlockClient) -> None:
    """An agent that plans changes nothing, also not through another agent."""
    await running.gateway.change_block(running.block, {"permissions.plan": True})
    answer = await running.say(program(call("agent_run", task="say:x"), "quote"))
    assert await tasks_of(running) == () and "refused" in answer.text
