"""The monitor alone delivers people's decisions about a call, on a subject that no one else may publish to."""

from typing import Any

import anyio
import msgspec
import pytest

import trunkline
from trunkline.api.tool import Proceed, ToolInvocation, ToolMiddleware
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.tools.messages import (
    CallTool,
    EffectAsked,
    EffectFinished,
    EffectStarted,
    QuestionAnswer,
    ToolOutcome,
)
from trunkline.contracts.tools.subjects import CALL_DECIDED_TOOL, CALL_TOOL
from trunkline.contracts.turns.subjects import EFFECT
from trunkline.workers.tools.call_person import MAX_QUESTIONS
from trunkline_bus import Endpoint, RemoteFault, SequenceConflict, new_id

pytestmark = pytest.mark.anyio


class Shop:
    """One tool that needs approval and one that asks a person; ``ran`` lists the executed calls."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="write")
        async def note(text: str) -> str:
            """Note a text."""
            self.ran.append(text)
            return "noted"

        @trunkline.tool(effect="read")
        async def wonder(context: trunkline.ToolContext) -> str:
            """Ask a person."""
            self.ran.append(await context.person.ask("Which colour?"))
            return "told"

        @trunkline.tool(effect="read")
        async def pester(context: trunkline.ToolContext) -> str:
            """Ask without end."""
            try:
                for number in range(MAX_QUESTIONS + 1):
                    self.ran.append(await context.person.ask(f"And {number}?"))
            except trunkline.NoAnswer as error:
                return str(error)
            return "never enough"

        @trunkline.tool(effect="write")
        async def nag(context: trunkline.ToolContext) -> str:
            """Ask without end, although no answer arrives."""
            while True:
                try:
                    await context.person.ask("Well?")
                except trunkline.NoAnswer as error:
                    self.ran.append(str(error))
                    if "which is the limit" in str(error):
                        return str(error)

        @trunkline.tool(effect="write")
        async def compare(context: trunkline.ToolContext) -> str:
            """Ask two questions at once."""
            answers: dict[str, str] = {}

            async def ask(question: str) -> None:
                answers[question] = await context.person.ask(question)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, "Left?")
                tasks.start_soon(ask, "Right?")
            return f"{answers['Left?']} {answers['Right?']}"

        return [note, wonder, pester, nag, compare]


async def last_of(bus: Any, endpoint: Endpoint[CallTool, Any], request: CallTool) -> ToolOutcome:
    with anyio.fail_after(60):
        async with bus.call_streaming(endpoint, request, idle_timeout=60) as replies:
            return [reply async for reply in replies][-1]


def request(name: str, **arguments: str) -> CallTool:
    return CallTool(
        call=new_id("call"), name=name, arguments=arguments, block="main", conversation="c", turn="t", actor="agent:x"
    )  # fmt: skip


@pytest.mark.parametrize("name", ["note", "wonder"])
async def test_the_caller_of_a_tool_can_neither_approve_nor_answer_it(tools: Any, name: str) -> None:
    """The correct hash of the correct call is refused on the subject open to every caller, and accepted on the
    monitor's."""
    shop = Shop()
    given = {"text": "x"} if name == "note" else {}
    async with tools(shop, config={"permissions.approvals": "some"}) as caller:
        first = request(name, **given)
        asked = await last_of(caller.bus, CALL_TOOL, first)
        assert asked.status == "approval"
        said = QuestionAnswer(question=asked.call_hash, by="owner", text="x")
        claims = {"answers": (said,)} if name == "wonder" else {"approved": asked.call_hash}
        for claim in (claims, {**claims, "again": True}, {**claims, "call": new_id("call")}):
            with pytest.raises(RemoteFault, match="Only the monitor"):
                await last_of(caller.bus, CALL_TOOL, msgspec.structs.replace(first, **claim))
        assert shop.ran == []
        await caller.until(lambda: _denied(caller, first.call))
        done = await last_of(
            caller.bus, CALL_DECIDED_TOOL, msgspec.structs.replace(first, **claims, again=True)
        )
        assert (done.status, shop.ran) == ("ok", ["x"])


class SlowGate:
    """Delays the first call before the gates, as a suspended worker does."""

    stage = "policy"

    def __init__(self) -> None:
        self.open = anyio.Event()
        self.held = anyio.Event()

    @trunkline.hookimpl
    def trunkline_tool_middleware(self) -> list[ToolMiddleware]:
        return [self]

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        if not self.held.is_set():
            self.held.set()
            await self.open.wait()
        return await proceed(invocation)


async def test_a_question_from_before_the_approval_is_not_repeated(tools: Any) -> None:
    """A request without a reader is still running when the approved one arrives: the approved one gets the result
    and not the question again."""
    shop, gate = Shop(), SlowGate()
    first = request("note", text="x")
    async with tools(shop, config={"permissions.approvals": "some"}) as caller:
        asked = await last_of(caller.bus, CALL_TOOL, msgspec.structs.replace(first, call=new_id("call")))
    some = {"permissions.approvals": "some"}
    async with tools(shop, gate, config=some) as caller, anyio.create_task_group() as tasks:
        tasks.start_soon(last_of, caller.bus, CALL_TOOL, first)
        await gate.held.wait()
        outcomes: list[ToolOutcome] = []

        async def decided() -> None:
            approved = msgspec.structs.replace(first, approved=asked.call_hash, again=True)
            outcomes.append(await last_of(caller.bus, CALL_DECIDED_TOOL, approved))

        tasks.start_soon(decided)
        await anyio.sleep(0.3)
        gate.open.set()
        await caller.until(lambda: bool(outcomes))
    assert (outcomes[0].status, shop.ran) == ("ok", ["x"])


class ServerTool:
    """A tool ``note`` provided by a server; ``ran`` lists the executed calls."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.ran: list[str] = []

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="write")
        async def note(text: str) -> str:
            """Note a text."""
            self.ran.append(text)
            return "noted"

        note.spec = msgspec.structs.replace(note.spec, source=f"mcp:{self.server}")
        return [note]


async def test_an_approval_covers_the_tool_of_one_server_only(tools: Any) -> None:
    """While a person thinks, a server may go and another bring a tool that is called the same."""
    borrowed, other = ServerTool("known"), ServerTool("unknown")
    call_request, some = request("note", text="x"), {"permissions.approvals": "some"}
    async with tools(borrowed, config=some) as caller:
        asked = await last_of(caller.bus, CALL_TOOL, call_request)
        same = msgspec.structs.replace(call_request, call=new_id("call"), approved=asked.call_hash)
        assert (await last_of(caller.bus, CALL_DECIDED_TOOL, same)).status == "ok"
    approved = msgspec.structs.replace(call_request, approved=asked.call_hash)
    async with tools(other, config=some) as caller:
        refused = await last_of(caller.bus, CALL_DECIDED_TOOL, approved)
        caller.refused[call_request.call] = refused.status
    assert (refused.status, other.ran, borrowed.ran) == ("error", [], ["x"])


async def test_a_question_applies_to_every_worker_that_may_have_the_call(tools: Any) -> None:
    """A worker that received the call before, under rules without approval, cannot start it any more once another
    has requested an approval; nor does it run without the approval when the rules change. With the approval, it runs
    once."""
    shop = Shop()
    async with tools(shop, config={"permissions.approvals": "some"}) as caller:
        call_request = msgspec.structs.replace(request("note", text="x"), again=True)
        asked = await last_of(caller.bus, CALL_TOOL, call_request)
        assert asked.status == "approval"
        begun = EffectStarted(call=call_request.call, tool="note", worker="another", effect="write", turn="t")
        with pytest.raises(SequenceConflict):
            await caller.bus.append(EFFECT, begun, expect=0, call=call_request.call)
        await caller.remember("blocks/main/block.toml", '[permissions]\napprovals = "none"')
        fresh = request("note", text="free")
        await caller.until(lambda: _runs(caller, fresh))
        again = await last_of(caller.bus, CALL_TOOL, call_request)
        assert (again.status, again.call_hash, shop.ran) == ("approval", asked.call_hash, ["free"])
        other = msgspec.structs.replace(call_request, approved=fresh.call)
        assert (await last_of(caller.bus, CALL_DECIDED_TOOL, other)).status == "approval"
        approved = msgspec.structs.replace(call_request, approved=asked.call_hash, again=False)
        done = await last_of(caller.bus, CALL_DECIDED_TOOL, approved)
        assert (done.status, shop.ran) == ("ok", ["free", "x"])
        assert (await last_of(caller.bus, CALL_DECIDED_TOOL, approved)).repeated
        kinds = [type(one) for one in await caller.records(call_request.call)]
        assert kinds == [EffectAsked, EffectStarted, EffectFinished] and shop.ran == ["free", "x"]


async def _runs(caller: Any, call_request: CallTool) -> bool:
    return (await last_of(caller.bus, CALL_TOOL, call_request)).status == "ok"


async def _denied(caller: Any, call: str) -> bool:
    lines = [stored.data async for stored in caller.bus.history(AUDIT)]
    return any((line.call, line.decision) == (call, "denied") and "monitor" in line.why for line in lines)


async def test_a_call_asks_a_person_so_often_and_not_again(tools: Any) -> None:
    """A server or a plugin cannot park a turn without end; the tool is told of the limit, and so is the model."""
    shop = Shop()
    async with tools(shop) as caller:
        call_request = request("pester")
        outcome = await last_of(caller.bus, CALL_TOOL, call_request)
        while outcome.status == "approval":
            said = QuestionAnswer(question=outcome.call_hash, by="owner", text="yes")
            call_request = msgspec.structs.replace(
                call_request, answers=(*call_request.answers, said), again=True
            )
            outcome = await last_of(caller.bus, CALL_DECIDED_TOOL, call_request)
        assert outcome.status == "ok" and f"asked {MAX_QUESTIONS} times" in outcome.output
        assert len(call_request.answers) == MAX_QUESTIONS


async def test_concurrent_questions_of_a_call_are_asked_in_turn(tools: Any) -> None:
    """Each question is asked and gets its own answer, also in a call that must not run twice."""
    async with tools(Shop(), config={"permissions.approvals": "none"}) as caller:
        call_request = request("compare")
        outcome = await last_of(caller.bus, CALL_TOOL, call_request)
        asked: list[str] = []
        while outcome.status == "approval":
            asked.append(outcome.detail.text)
            said = QuestionAnswer(
                question=outcome.call_hash, by="owner", text=outcome.detail.text.strip("?").lower()
            )
            call_request = msgspec.structs.replace(
                call_request, answers=(*call_request.answers, said), again=True
            )
            outcome = await last_of(caller.bus, CALL_DECIDED_TOOL, call_request)
        assert (outcome.status, outcome.output, asked) == ("ok", "left right", ["Left?", "Right?"])


async def test_a_waiting_call_repeats_its_question_up_to_the_limit(tools: Any) -> None:
    """A call that waits in its worker does not ask without end either; each time it is told that no answer came."""
    shop = Shop()
    config = {"tools.answer_wait": 0.01, "permissions.approvals": "none"}
    async with tools(shop, config=config) as caller, anyio.create_task_group() as tasks:
        tasks.start_soon(caller.call, "nag")
        await caller.until(lambda: len(shop.ran) > MAX_QUESTIONS)
        tasks.cancel_scope.cancel()
    assert f"asked {MAX_QUESTIONS} times" in shop.ran[-1] and "in time" in shop.ran[0]
