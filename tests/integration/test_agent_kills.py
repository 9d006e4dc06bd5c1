"""Tasks of agents while each process that could hold one is killed by SIGKILL, and the server too."""

import json
from collections.abc import AsyncIterator

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.agents.messages import AgentTask
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.journal_messages import AgentAwaited, AgentReportRecorded, TurnStarted
from trunkline.contracts.turns.subjects import JOURNAL

from .approval_helpers import asking
from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

CHILD = "slow:15:100\nsay:the result"


@pytest.fixture(scope="module")
async def module_platform(
    provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProcessPlatform]:
    config = asking(provider, **{"permissions.approvals": "none"})
    async with process_platform(
        tmp_path_factory.mktemp("agents"), config=config, workers=ALL_WORKERS
    ) as running:
        yield running


def parent(*children: str) -> str:
    calls = " ".join(f"agent_run {json.dumps({'task': child})}" for child in children)
    return f"parallel:{calls}\nquote"


async def entries(running: ProcessPlatform, turn: str) -> list[object]:
    return [
        entry async for stored in running.bus.history(JOURNAL, turn=turn) for entry in stored.data.entries
    ]


async def tasks_of(running: ProcessPlatform, accepted: MessageAccepted) -> tuple[AgentTask, ...]:
    return (await running.gateway.agents(conversation=accepted.conversation)).tasks


async def when(running: ProcessPlatform, accepted: MessageAccepted, moment: str) -> None:
    """Wait for a moment of the family: the child has begun, or the parent waits for it."""
    with anyio.fail_after(60):
        while True:
            if moment == "parent waits":
                if any(isinstance(one, AgentAwaited) for one in await entries(running, accepted.turn)):
                    return
            else:
                for task in await tasks_of(running, accepted):
                    if any(isinstance(one, TurnStarted) for one in await entries(running, task.id)):
                        return
            await anyio.sleep(0.02)


async def check(running: ProcessPlatform, accepted: MessageAccepted, count: int) -> None:
    """Every child ran once, every result came once, and the parent was answered."""
    answer = await running.answer(accepted)
    assert answer.ended.code is None and answer.text.count("the result") == count, answer.text
    tasks = await tasks_of(running, accepted)
    assert len(tasks) == count
    own = await entries(running, accepted.turn)
    reports = [one for one in own if isinstance(one, AgentReportRecorded)]
    assert sorted(one.report.task for one in reports) == sorted(task.id for task in tasks)
    for task in tasks:
        begun = [one for one in await entries(running, task.id) if isinstance(one, TurnStarted)]
        assert len(begun) == 1


@pytest.mark.parametrize("moment", ["child begins", "parent waits"])
@pytest.mark.parametrize(
    "killed",
    [("gateway",), ("monitor",), ("tools",), (*ALL_WORKERS, "nats")],
    ids=lambda names: "-".join(names),
)
async def test_a_killed_process_loses_no_task_and_repeats_none(
    module_platform: ProcessPlatform, killed: tuple[str, ...], moment: str
) -> None:
    """Two tasks run while it is killed."""
    async with shared_platform(module_platform) as running:
        accepted = await running.send(parent(CHILD, CHILD))
        await when(running, accepted, moment)
        for name in killed:
            running.kill(name)
        if "nats" in killed:
            await running.start_all(ALL_WORKERS)
        else:
            await running.restart(killed[0])
        await check(running, accepted, 2)


async def test_a_result_waits_for_a_parent_whose_monitor_is_gone(module_platform: ProcessPlatform) -> None:
    """The child's end is reported while no monitor runs that could take it."""
    async with shared_platform(module_platform) as running:
        accepted = await running.send(parent("say:the result"))
        await when(running, accepted, "parent waits")
        running.kill("monitor")
        running.kill("gateway")
        await running.restart("gateway")
        await running.restart("monitor")
        await check(running, accepted, 1)
