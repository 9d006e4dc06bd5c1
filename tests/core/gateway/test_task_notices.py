"""What the owner is told of the tasks of agents, of which one cannot be read."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from tests.support.buses import bus_at
from trunkline._util.secrets.redactor import Redactor
from trunkline.api.testing import wait_until
from trunkline.contracts.agents.messages import AgentTask
from trunkline.contracts.channels.subjects import TELL_OWNER
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.gateway.messages import CommandSucceeded, TellOwner
from trunkline.contracts.turns.journal_messages import ModelCallFinished, TurnFinished, TurnRecord
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.parent_turn import ParentTurn
from trunkline.workers.gateway.agents.agent_records import AgentRecords
from trunkline.workers.gateway.agents.task_notices import MAX_TOLD, TaskNotices, shorten
from trunkline.workers.gateway.turn_lookup import TurnLookup, TurnState
from trunkline_bus import Bus, BusError, Request, service

pytestmark = pytest.mark.anyio

KEY = "sk-proj-" + "Zx81Kq" * 8


class Journals(TurnLookup):
    """The journals of the tasks. That of the task ``broken`` cannot be read; the task ``talkative`` told a key."""

    async def find(self, turn: str) -> TurnState | None:
        if turn == "broken":
            raise BusError("The journal is damaged.")
        if turn == "talkative":
            request = TurnRequested(
                turn=turn, conversation="task", block="main", channel="http", actor="owner", trigger="agent",
                message=Message(id="m", role="user", content="What is it?"),
            )  # fmt: skip
            answer = ModelCallFinished(step=0, text=f"It is {KEY} {'and so on ' * 200}")
            entries = (answer, TurnFinished(reason="stop"))
            return TurnState(request, [TurnRecord(turn=turn, epoch=1, owner="worker", entries=entries)])
        return await super().find(turn)


def untold(id: str) -> AgentTask:
    """A task that has ended, of which the owner is to be told."""
    now = datetime.now(UTC)
    parent = ParentTurn(
        block="main", conversation="conv", turn="turn", call="call", agent="ada", root="turn",
        root_conversation="conv", types=("",),
    )  # fmt: skip
    return AgentTask(
        id=id, block="main", conversation="task", parent=parent, awaited=False, deadline=now, state="done",
        ended_at=now, untold=True, started_at=now - timedelta(seconds=2),
    )  # fmt: skip


@asynccontextmanager
async def telling(bus: Bus, *tasks: AgentTask) -> AsyncIterator[list[TellOwner]]:
    """What the channel ``bell`` is told of these tasks."""
    told: list[TellOwner] = []

    async def tell(request: Request[TellOwner]) -> CommandSucceeded:
        told.append(request.data)
        return CommandSucceeded()

    records = AgentRecords(bus)
    for task in tasks:
        await records.add_task(task)
    async with service(bus, name="channels", version="1") as channels, anyio.create_task_group() as group:
        await channels.add(TELL_OWNER, tell, channel="bell")
        group.start_soon(TaskNotices(bus, Journals(bus), records, ("bell",), Redactor()).run)
        yield told
        group.cancel_scope.cancel()


async def test_a_task_whose_journal_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
    """It stays untold, and the others are told."""
    async with bus_at(tmp_path) as bus, telling(bus, untold("broken"), untold("whole")) as told:
        await wait_until(lambda: told)
        assert [one.notice for one in told] == ["whole"]
        task = await AgentRecords(bus).task("broken")
        assert task is not None and task.untold


async def test_what_a_turn_has_seen_is_told_to_nobody(tmp_path: Path) -> None:
    """What another turn gave, and another agent does, it has not seen."""
    async with bus_at(tmp_path) as bus:
        records, tasks = AgentRecords(bus), [untold(id) for id in ("first", "second")]
        for task in tasks:
            await records.add_task(task)
        await records.note_seen("other")
        await records.note_seen("turn", "other")
        assert [task.untold for task in await records.tasks()] == [True, True]
        await records.note_seen("turn")
        assert [task.untold for task in await records.tasks()] == [False, False]


async def test_a_key_in_a_result_is_not_told(tmp_path: Path) -> None:
    """A chat service would read it."""
    async with bus_at(tmp_path) as bus, telling(bus, untold("talkative")) as told:
        await wait_until(lambda: told)
    assert told[0].text.startswith("It is") and KEY[:9] not in told[0].text, told


def test_a_long_result_is_cut_with_a_mark() -> None:
    """Between words where there are some, and elsewhere in a text without spaces."""
    assert shorten("short") == "short"
    assert shorten("字" * 2_000) == "字" * MAX_TOLD + " …"
    assert shorten("Result: " + "字" * 2_000).startswith("Result: 字字字")
    long = shorten("seven77 " * 200)
    assert long.endswith("seven77 …") and len(long) <= MAX_TOLD + 2
