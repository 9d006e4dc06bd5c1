"""Every decision about a call is in the audit log once, and a call runs only after its decision is in the log."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
import pytest

import trunkline
from trunkline.config.settings import ApprovalsSettings
from trunkline.contracts.approvals.messages import Approval
from trunkline.contracts.approvals.subjects import APPROVAL
from trunkline.contracts.audit.messages import AuditEntry
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.conversations.messages import Message, ToolCall, utc_now
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.models.adapter import ModelAdapter
from trunkline.contracts.streams import APPROVAL_STREAM, AUDIT_STREAM
from trunkline.contracts.topology import topology
from trunkline.contracts.turns.context import TurnInfo
from trunkline.contracts.turns.journal_messages import (
    ApprovalAsked,
    ApprovalRecorded,
    JournalEntry,
    ModelCallFinished,
    ModelCallPlanned,
    ToolPlanned,
    TurnResumed,
    TurnStarted,
)
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.subjects import JOURNAL, TURN_FACT
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.workers.monitor.approval_publisher import ApprovalPublisher, PublishedApprovals
from trunkline.workers.monitor.turn import Turn
from trunkline_bus import Bus, BusError, apply
from trunkline_bus.streams.jetstream import request_api

pytestmark = pytest.mark.anyio

CALL = ToolCall(id="c", name="write_file", arguments={})


@pytest.fixture
async def running() -> AsyncIterator[Platform]:
    async with platform(workers=("memory",)) as running:
        yield running


def asking_turn() -> Turn:
    """A turn whose call was sent to a tools worker."""
    message = Message(id="m", role="user", content="hello")
    request = TurnRequested(
        turn="t", block="main", conversation="v", message=message, actor="owner", channel="test"
    )
    entries: tuple[JournalEntry, ...] = (
        TurnStarted(request=request, model="scripted"),
        ModelCallPlanned(step=0),
        ModelCallFinished(step=0, tool_calls=(CALL,), finish_reason="tool_calls"),
        ToolPlanned(call=CALL, key="k"),
    )
    turn = Turn()
    for entry in entries:
        turn.apply(entry)
    return turn


def question(hash: str) -> ApprovalAsked:
    now = utc_now()
    return ApprovalAsked(
        call_id="c", call_hash=hash, question="?", asked_at=now, expires_at=now + timedelta(hours=1)
    )


def decided() -> ApprovalRecorded:
    return ApprovalRecorded(call_id="c", allow=True, by="owner", decided_at=utc_now())


async def audited(bus: Bus) -> list[AuditEntry]:
    return [stored.data async for stored in bus.history(AUDIT)]


async def without(bus: Bus, stream: str) -> None:
    await request_api(bus.link, f"STREAM.DELETE.{stream}")


async def test_the_decision_about_an_unpublished_question_is_audited(running: Platform) -> None:
    """A reader of the feed may decide although the question could not be published."""
    publisher, published, turn = (
        ApprovalPublisher(running.bus, ApprovalsSettings()),
        PublishedApprovals(),
        asking_turn(),
    )
    turn.apply(question("h"))
    await without(running.bus, APPROVAL_STREAM)
    await publisher.try_publish(turn, published, {"c"})
    await apply(running.bus, topology())
    turn.apply(decided())
    await publisher.publish(turn, published, {"c"})
    (line,) = await audited(running.bus)
    assert (line.event, line.decision, line.by) == ("approval", "approved", ("owner",))


@pytest.mark.parametrize("replayed", [False, True])
async def test_a_decision_is_audited_though_its_call_asks_again(running: Platform, replayed: bool) -> None:
    """The first settlement could not be published; both decisions are in the log, also after a replay."""
    publisher, published, turn = (
        ApprovalPublisher(running.bus, ApprovalsSettings()),
        PublishedApprovals(),
        asking_turn(),
    )
    first, second = question("h1"), question("h2")
    turn.apply(first)
    await publisher.publish(turn, published, {"c"})
    turn.apply(decided())
    await without(running.bus, AUDIT_STREAM)
    await publisher.try_publish(turn, published, {"c"})
    await apply(running.bus, topology())
    turn.apply(ToolPlanned(call=CALL, key="k"))
    turn.apply(second)
    if replayed:
        published = PublishedApprovals()
    await publisher.publish(turn, published, {"c"})
    turn.apply(decided())
    await publisher.publish(turn, published, {"c"})
    assert [line.decision for line in await audited(running.bus)] == ["approved", "approved"]
    states = [stored.data async for stored in running.bus.history(APPROVAL)]
    assert {state.call_hash: state.settled is not None for state in states} == {"h1": True, "h2": True}


async def test_a_repeated_audit_line_has_the_time_of_the_decision(running: Platform) -> None:
    """Memory stores a repeated line once, because the repeat has the same id and the same day."""
    publisher, turn, decision = ApprovalPublisher(running.bus, ApprovalsSettings()), asking_turn(), decided()
    turn.apply(question("h"))
    turn.apply(decision)
    await publisher.publish(turn, PublishedApprovals())
    (line,) = await audited(running.bus)
    assert line.at == decision.decided_at


async def test_a_decision_that_cannot_be_audited_raises(running: Platform) -> None:
    """So the turn stops before the call runs."""
    publisher, published, turn = (
        ApprovalPublisher(running.bus, ApprovalsSettings()),
        PublishedApprovals(),
        asking_turn(),
    )
    turn.apply(question("h"))
    await publisher.publish(turn, published)
    turn.apply(decided())
    await without(running.bus, AUDIT_STREAM)
    with pytest.raises(BusError):
        await publisher.publish_decisions(turn, published)
    await apply(running.bus, topology())
    await publisher.publish_decisions(turn, published)
    with anyio.fail_after(10):
        assert len(await audited(running.bus)) == 1


class Desk:
    """A model, and a tool that notes what it ran with. While ``broken`` is true, every turn fails unexpectedly."""

    def __init__(self) -> None:
        self.model = ScriptedModel()
        self.ran: list[str] = []
        self.broken = False

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[trunkline.Tool]:
        @trunkline.tool(effect="write")
        async def note(text: str) -> str:
            """Note a text."""
            self.ran.append(text)
            return text

        return [note]

    @trunkline.hookimpl
    def trunkline_turn_middleware(self) -> Sequence[object]:
        return [self._around]

    async def _around(self, turn: TurnInfo, proceed: Callable[[], Awaitable[None]]) -> None:
        if self.broken:
            raise RuntimeError("no")
        await proceed()


@asynccontextmanager
async def office(desk: Desk) -> AsyncIterator[Platform]:
    """A platform that asks about calls and runs one turn at a time."""
    config = {
        "runtime.provider_adapter": desk.model.name,
        "permissions.approvals": "some",
        "monitor.concurrency": 1,
    }
    async with platform(plugins=[desk], config=config) as running:
        yield running


async def asked_by(running: Platform, text: str) -> tuple[MessageAccepted, Approval]:
    accepted = await running.send(text)
    with anyio.fail_after(30):
        while not (found := await running.gateway.waiting()):  # noqa: ASYNC110  asked over the bus
            await anyio.sleep(0.05)
    return accepted, found[0]


async def test_an_approved_call_waits_for_the_audit_log_without_a_slot() -> None:
    """While the audit log cannot be written the call does not run, and other conversations are answered. Once the
    stream is back, the call runs, once, and its approval is in the log."""
    desk = Desk()
    async with office(desk) as running:
        accepted, asked = await asked_by(running, 'call:note {"text": "a"} ;; say:done')
        await without(running.bus, AUDIT_STREAM)
        await running.gateway.decide(asked.turn, asked.call, asked.call_hash, allow=True)
        for _ in range(3):
            assert (await running.say("say:other")).text == "other"
            await anyio.sleep(0.5)
        assert desk.ran == []
        written = [stored.data.entries async for stored in running.bus.history(JOURNAL, turn=accepted.turn)]
        await apply(running.bus, topology())
        assert (await running.answer(accepted)).text == "done"
        assert desk.ran == ["a"]
        lines = [line for line in await audited(running.bus) if line.event == "approval"]
        assert [(line.decision, line.turn) for line in lines] == [("approved", accepted.turn)]
        assert sum(isinstance(entry, TurnResumed) for entries in written for entry in entries) <= 1


async def test_a_cancel_does_not_wait_for_the_audit_log() -> None:
    """The cancel ends the turn, and the approved call never runs. Later the log has the approval."""
    desk = Desk()
    async with office(desk) as running:
        accepted, asked = await asked_by(running, 'call:note {"text": "a"} ;; say:done')
        await without(running.bus, AUDIT_STREAM)
        await running.gateway.decide(asked.turn, asked.call, asked.call_hash, allow=True)
        await anyio.sleep(1)
        await running.gateway.cancel(accepted.turn)
        assert (await running.answer(accepted)).ended.reason == "cancelled"
        await apply(running.bus, topology())
        with anyio.fail_after(30):
            while not [line for line in await audited(running.bus) if line.event == "approval"]:  # noqa: ASYNC110
                await anyio.sleep(0.1)
        assert desk.ran == []


async def test_a_turn_that_is_given_up_settles_its_approvals_and_is_a_fact() -> None:
    """Also when the bus fails at that moment: the item stays in the inbox until both are published."""
    desk = Desk()
    async with office(desk) as running:
        accepted, asked = await asked_by(running, 'call:note {"text": "a"} ;; say:done')
        await without(running.bus, AUDIT_STREAM)
        desk.broken = True
        await running.gateway.decide(asked.turn, asked.call, asked.call_hash, allow=True)
        assert (await running.answer(accepted)).ended.code == "internal"
        await apply(running.bus, topology())
        with anyio.fail_after(30):
            while not [one.data async for one in running.bus.history(TURN_FACT, fact="finished")]:  # noqa: ASYNC110
                await anyio.sleep(0.1)
        (line,) = [line for line in await audited(running.bus) if line.event == "approval"]
        assert (line.decision, line.turn) == ("withdrawn", accepted.turn)
        assert await running.gateway.waiting() == ()
        assert desk.ran == []
