"""Calls that are stopped or left without a reader: a call that has not started never starts, and an unknown outcome
is reported as such."""

from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline.contracts.tools.messages import EffectFinished, EffectStarted, ToolOutcome
from trunkline.contracts.turns.journal_messages import (
    ApprovalAsked,
    ApprovalRecorded,
    ModelCallFinished,
    TurnResumed,
    TurnStarted,
)
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.testing.platform import platform
from trunkline.workers.monitor import tool_caller
from trunkline.workers.monitor.tool_caller import ToolCaller, UnattendedToolCaller
from trunkline.workers.monitor.turn import RunToolCall, Turn
from trunkline_bus import Scope

pytestmark = pytest.mark.anyio


class Bank:
    """A tool with an effect, and a hold on the record that it starts."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.starting = anyio.Event()
        self.go = anyio.Event()

    async def __call__(self, message: Any, proceed: Any) -> None:
        """Hold each start of a call."""
        if message.direction == "out" and isinstance(message.envelope.data, EffectStarted):
            self.starting.set()
            await self.go.wait()
        await proceed(message)

    @trunkline.hookimpl
    def trunkline_bus_middleware(self) -> list[Any]:
        return [self]

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="write")
        async def pay(to: str) -> str:
            """Pay at once."""
            self.paid.append(to)
            return "paid"

        return [pay]


async def test_a_call_stopped_while_its_start_is_recorded_does_not_begin(tools: Any) -> None:
    """The record cannot be withdrawn, so the ledger records that the call started and was not run, as its caller is
    told."""
    bank = Bank()
    async with tools(bank) as caller, anyio.create_task_group() as tasks:
        found: list[ToolOutcome] = []

        async def pay() -> None:
            found.append(await caller.call("pay", {"to": "you"}, key="call_pay"))

        tasks.start_soon(pay)
        await caller.until(bank.starting.is_set)
        await caller.cancel("call_pay", "the person said stop")
        await caller.until(
            lambda: bool(caller.progress)
        )  # the stop has come by then, in the order of one connection
        bank.go.set()
        await caller.until(lambda: bool(found))
        assert (found[0].status, found[0].output) == ("error", "pay was not run: the person said stop.")
        assert bank.paid == []
        assert [type(one) for one in await caller.records("call_pay")] == [EffectStarted, EffectFinished]
        assert (await caller.call("pay", {"to": "you"}, key="call_pay")).output == found[0].output


async def test_a_stop_that_overtakes_its_call_applies(tools: Any) -> None:
    """Stops are not stored, and a call may still be on its way: it is not begun when it comes; others are."""
    bank = Bank()
    bank.go.set()
    async with tools(bank) as caller:
        await caller.cancel("call_early", "the turn was cancelled")
        assert (
            await caller.call("pay", {"to": "me"})
        ).status == "ok"  # on the same connection, so the stop was heard
        stopped = await caller.call("pay", {"to": "you"}, key="call_early")
        assert stopped.output == "pay was not run: the turn was cancelled." and bank.paid == ["me"]


async def test_a_refusal_of_a_possibly_started_call_is_recorded_first(tools: Any) -> None:
    """Another worker that was asked before, and has other rules or plugins, cannot begin it any more behind the
    refusal; a first asking leaves no record, so that it may be asked again."""
    bank = Bank()
    bank.go.set()
    async with tools(bank) as caller:
        refused = await caller.call("pay", {}, key="call_first")
        assert refused.status == "error" and await caller.records("call_first") == []
        refused = await caller.call("pay", {}, key="call_again", again=True)
        assert [type(one) for one in await caller.records("call_again")] == [EffectFinished]
        late = await caller.call("pay", {"to": "you"}, key="call_again")
        assert (late.output, late.repeated, bank.paid) == (refused.output, True, [])
        gone = await caller.call("nothing_here", {}, key="call_gone", again=True)
        assert gone.status == "error" and len(await caller.records("call_gone")) == 1


class AskingTools:
    """A tool that asks in its middle, and one that asks before it does anything."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.ended = anyio.Event()

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="write")
        async def ponder(context: trunkline.ToolContext) -> str:
            """Ask in the middle."""
            try:
                await context.person.ask("Which one?")
            except trunkline.NoAnswer:
                self.done.append("pondered")
            finally:
                self.ended.set()
            return "pondered"

        @trunkline.tool(effect="read")
        async def wonder(context: trunkline.ToolContext) -> str:
            """Ask first."""
            return await context.person.ask("Which one?")

        return [ponder, wonder]


async def test_a_running_call_that_asks_nobody_is_stopped_as_unknown(tools: Any) -> None:
    """A call that gave itself up was not run; one that waits in its worker has started, and does not continue by
    itself later."""
    asking_tools = AskingTools()
    async with tools(asking_tools) as caller:

        async def reported(name: str) -> ToolOutcome:
            command = RunToolCall(
                ToolCall(id="c", name=name, arguments={}), f"call_{name}", permissions=("*",)
            )
            scope = Scope(block="main", conversation="conv_c", turn="turn_t")
            return await UnattendedToolCaller(caller.bus, 3.0).call(command, scope, "owner")

        asked_first = await reported("wonder")
        assert asked_first.status == "error" and "It was not run" in asked_first.output
        asked_during = await reported("ponder")
        assert asked_during.status == "unknown" and "running call was stopped" in asked_during.output
        with anyio.fail_after(60):
            await asking_tools.ended.wait()
        assert asking_tools.done == []


@pytest.mark.parametrize("again", [False, True])
async def test_a_call_that_an_owner_before_may_have_sent_is_in_doubt(
    again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No tools worker is there any more: a call that was never sent was not run; one that may have been, who knows."""
    monkeypatch.setattr(tool_caller, "NO_WORKER_TIMEOUT", 0.5)
    async with platform(tmp_path, workers=("memory",)) as running:
        command = RunToolCall(ToolCall(id="c", name="pay", arguments={}), "call_gone", again=again)
        scope = Scope(block="main", conversation="conv_c", turn="turn_t")
        outcome = await ToolCaller(running.bus, 1.0).call(command, scope, "owner")
        assert outcome.status == ("unknown" if again else "error")
        assert ("It was not run" in outcome.output) is not again


def test_a_new_owner_sees_calls_that_its_predecessor_may_have_sent() -> None:
    """A call planned in the journal may have been sent; after a question it was not run, and a later call belongs to
    the new owner."""
    call = ToolCall(id="c", name="pay", arguments={})
    turn = Turn()
    message = Message(id="msg_1", role="user", content="pay")
    request = TurnRequested(
        turn="turn_1", block="main", conversation="conv_1", message=message, actor="owner", channel="test"
    )
    turn.advance(TurnStarted(request=request, model="m"))
    _, (first,) = turn.advance(ModelCallFinished(step=0, tool_calls=(call,), finish_reason="tool_calls"))
    _, (second,) = turn.advance(TurnResumed())
    asked = ApprovalAsked(call_id="c", call_hash="h", question="Pay?")
    turn.advance(asked)
    turn.advance(TurnResumed())
    _, (third,) = turn.advance(ApprovalRecorded(call_id="c", allow=True, by="owner"))
    _, (fourth,) = turn.advance(TurnResumed())
    commands = (first, second, third, fourth)
    assert all(isinstance(command, RunToolCall) for command in commands)
    assert [getattr(command, "again", None) for command in commands] == [False, True, False, True]
