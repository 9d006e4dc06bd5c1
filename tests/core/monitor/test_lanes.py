"""Lanes on a platform with one slot: who runs first, who is preempted, and what acts while the slot is taken."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import msgspec
import pytest

import trunkline
from tests.background_turns import entries_of, has, in_background, streams, until
from tests.block_client import BlockClient
from trunkline.contracts.costs.subjects import COST
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_messages import StatusShown, lane_status
from trunkline.contracts.turns.journal_messages import (
    ApprovalRecorded,
    ModelCallPlanned,
    TurnFinished,
    TurnPreempted,
    TurnStarted,
)
from trunkline.contracts.turns.lanes import lane_of
from trunkline.contracts.workers.panic import Panic
from trunkline.contracts.workers.subjects import PANIC, WORKER_BUCKET
from trunkline.testing.platform import text_of
from trunkline.testing.scripted_model import ScriptedModel

from .conftest import AskFirst, Gate, Shared, Tools, scripted

pytestmark = pytest.mark.anyio

LONG = "slow:200:20"
"""An answer that takes some seconds."""


class SlowWrite:
    """A tool that writes, and that ends when the test lets it."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gate = anyio.Event()

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[trunkline.Tool]:
        @trunkline.tool(effect="write")
        async def write_slowly(text: str) -> str:
            """Write a text slowly."""
            self.log.append(f"begin {text}")
            await self.gate.wait()
            self.log.append(f"end {text}")
            return f"wrote {text}"

        return [write_slowly]


@pytest.fixture(scope="module")
async def writer() -> SlowWrite:
    return SlowWrite()


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, writer: SlowWrite) -> AsyncIterator[Shared]:
    """One platform with one slot. A person decides about ``note``."""
    tools = Tools()
    async with scripted(tools, writer, AskForNotes(), **{"monitor.concurrency": 1}) as (running, model):
        yield Shared(running, model, tools)


class AskForNotes(Gate):
    """A plugin whose gate wants a person's yes for each ``note``."""

    @trunkline.hookimpl
    def trunkline_tool_middleware(self) -> Sequence[AskFirst]:
        return [OnlyNotes()]


class OnlyNotes(AskFirst):
    """A gate that lets everything pass but ``note``."""

    async def __call__(self, invocation, proceed):  # type: ignore[no-untyped-def]
        if invocation.spec.name != "note":
            return await proceed(invocation)
        return await super().__call__(invocation, proceed)


async def background(client: BlockClient, text: str, **fields: Any) -> MessageAccepted:
    """A background turn in the client's block."""
    return await in_background(client, text, block=client.block, **fields)


async def waits(tools: Tools) -> None:
    """Wait until the tool ``wait`` runs."""

    async def _waits() -> bool:
        return tools.waiting == 1

    await until(_waits)


def asked(model: ScriptedModel) -> list[str]:
    """The last messages of the persons in the model's requests, in order."""
    return [[one.content for one in request.messages if one.role == "user"][-1] for request in model.requests]


async def test_CC_T1_waiting_turns_run_in_the_order_of_their_lanes(
    client: BlockClient, tools: Tools, model: ScriptedModel
) -> None:
    """While a person's turn has the only slot: a system turn runs at once, then an interactive turn before the
    background turns that came first, and those in their order."""
    first = await client.send("call:wait {} ;; say:first")
    await waits(tools)
    later = [await background(client, f"say:background-{number}") for number in range(2)]
    person = await client.send("say:person")
    system = await background(client, "say:system", lane="system")
    assert (await client.answer(system)).text == "system"

    async def reported() -> bool:
        """The heartbeat, which ``trunkline top`` shows, has the lanes."""
        entries = await client.bus.kv(WORKER_BUCKET).entries()
        beats = [entry.value for entry in entries if entry.value and entry.value.kind == "monitor"]
        return {load.lane: (load.running, load.waiting) for beat in beats for load in beat.lanes} == {
            "interactive": (1, 1),
            "background": (0, 2),
        }

    await until(reported)
    tools.gate.set()
    for accepted in (first, person, *later):
        await client.answer(accepted)
    assert [text for text in asked(model) if text.startswith("say:")] == [
        "say:system",
        "say:person",
        "say:background-0",
        "say:background-1",
    ]


async def test_CC_T2_a_message_preempts_a_background_turn(client: BlockClient, model: ScriptedModel) -> None:
    """The stream of the background turn is cut, the person's turn runs before any other background turn, and the
    preempted turn finishes exactly once with its whole answer. What the cut call cost is in the ledger. The feed says
    that the turn waited, and a preemption is no error."""
    long = await background(client, LONG)
    await streams(client, long)
    other = await background(client, "say:other")
    answer = await client.say("say:person")
    assert answer.text == "person" and answer.ended.code is None
    preempted = await client.answer(long)
    assert preempted.text.split()[-1] == "word-200" and preempted.text.split()[0] == "word-1"
    assert preempted.ended.reason == "stop"
    statuses = [event for event in preempted.events if isinstance(event, StatusShown)]
    assert statuses == [lane_status(1, waiting=True), lane_status(1, waiting=False)]
    entries = await entries_of(client, long)
    count = {
        kind: sum(isinstance(entry, kind) for entry in entries)
        for kind in (TurnPreempted, TurnFinished, TurnStarted)
    }
    assert count == {TurnPreempted: 1, TurnFinished: 1, TurnStarted: 1}
    assert sum(isinstance(entry, ModelCallPlanned) for entry in entries) == 2
    await client.answer(other)
    order = asked(model)
    assert order.index("say:person") < order.index("say:other")
    view = await client.gateway.conversation(long.conversation)
    assert [one.content.split()[-1] for one in view.messages if one.role == "assistant"] == ["word-200"]
    costs = [one.data async for one in client.bus.history(COST)]
    assert sum(entry.turn == long.turn for entry in costs) == 2


async def test_a_call_that_writes_is_not_cut(
    client: BlockClient, writer: SlowWrite, model: ScriptedModel
) -> None:
    """A background turn whose tool writes gives up its slot, and the tool runs on. The turn takes its result when it
    continues, and the tool has run once."""
    turn = await background(client, 'call:write_slowly {"text": "a"} ;; say:done')

    async def begun() -> bool:
        return writer.log == ["begin a"]

    await until(begun)
    assert (await client.say("say:person")).text == "person"
    assert writer.log == ["begin a"]
    writer.gate.set()
    assert (await client.answer(turn)).text == "done"
    assert writer.log == ["begin a", "end a"]
    assert sum(isinstance(entry, TurnPreempted) for entry in await entries_of(client, turn)) == 1


async def test_a_message_behind_a_background_turn_makes_it_interactive(client: BlockClient) -> None:
    """A person's message in the conversation of a background turn does not wait behind other people's turns, and the
    turn before it is not preempted."""
    long = await background(client, LONG)
    await streams(client, long)
    behind = await client.send("say:behind", conversation=long.conversation)
    elsewhere = await client.send("say:elsewhere")
    assert (await client.answer(behind)).text == "behind"
    assert (await client.answer(elsewhere)).text == "elsewhere"
    assert not any(isinstance(entry, TurnPreempted) for entry in await entries_of(client, long))


async def test_decisions_and_cancels_act_while_the_slots_are_taken(
    client: BlockClient, tools: Tools, model: ScriptedModel
) -> None:
    """A decision is recorded and settles its approval; a parked turn and a waiting turn are cancelled. The call that
    was approved runs when its turn has the slot."""
    decided = await client.send('call:note {"text": "a"} ;; say:noted')
    withdrawn = await client.send('call:note {"text": "b"} ;; say:noted')
    approvals = {}

    async def all_ask() -> bool:
        approvals.update({one.turn: one for one in await client.gateway.waiting()})
        return {decided.turn, withdrawn.turn} <= approvals.keys()

    await until(all_ask)
    busy = await client.send("call:wait {} ;; say:busy")
    await waits(tools)
    waiting = await client.send("say:waiting")
    question = approvals[decided.turn]
    await client.gateway.decide(decided.turn, question.call, question.call_hash, allow=True)

    await has(client, decided, ApprovalRecorded)

    async def settled() -> bool:
        return decided.turn not in {one.turn for one in await client.gateway.waiting()}

    await until(settled)
    for accepted in (withdrawn, waiting):
        await client.gateway.cancel(accepted.turn)
        assert (await client.answer(accepted)).ended.reason == "cancelled"
    assert tools.waiting == 1 and tools.log == []
    tools.gate.set()
    assert (await client.answer(busy)).text == "busy"
    assert (await client.answer(decided)).text == "noted"
    assert tools.log == ["a"] and "say:waiting" not in asked(model)


async def test_CC_T3_an_error_in_a_lane_stops_nobody(client: BlockClient) -> None:
    """A background turn whose model fails reports its error; the next one of its lane runs."""
    failing, next_one = await background(client, "status:401"), await background(client, "say:next")
    assert (await client.answer(failing)).ended.reason == "error"
    assert (await client.answer(next_one)).text == "next"


def test_the_lane_follows_from_the_trigger() -> None:
    """A person's message is interactive; everything else is in the background unless the request says otherwise."""
    assert [lane_of(trigger, msgspec.UNSET) for trigger in ("message", "schedule", "webhook")] == [
        "interactive",
        "background",
        "background",
    ]
    assert lane_of("schedule", "interactive") == "interactive"


async def test_panic_acts_while_the_slots_are_taken(
    client: BlockClient, tools: Tools, shared: Shared
) -> None:
    """All running turns end at once, and the turns that wait call no model. This is the last test of the module."""
    busy = await client.send("call:wait {} ;; say:busy")
    await waits(tools)
    waiting = await background(client, "say:waiting")
    await client.bus.publish(PANIC, Panic(by="somebody"))
    # The tools worker may see the switch before the monitor does: then the turn ends by its refused next model call.
    assert (await client.answer(busy)).ended.reason in ("cancelled", "error")
    assert (await client.answer(waiting)).ended.reason == "error"
    assert tools.waiting == 0 and text_of((await client.answer(waiting)).events) == ""
