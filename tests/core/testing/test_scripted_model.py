"""The scripted model keeps the contract of adapters, and answers by functions, lists and programs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from trunkline.contracts.conversations.messages import Message, ToolCall, Usage
from trunkline.contracts.models.adapter import Call, Finish, ModelEvent, ModelRequest, Text, ToolRan
from trunkline.errors import ErrorCode, ModelError
from trunkline.testing.adapter_suite import (
    PROGRAMS,
    AdapterSuite,
    Situation,
    SituationName,
    conversation_after_calls,
    request_for,
)
from trunkline.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio


class TestContract(AdapterSuite):
    """The contract, with programs in the last message."""

    lacks = {"unreachable": "there is nothing to reach", "miscounted": "a script counts its words"}

    @asynccontextmanager
    async def situation(self, name: SituationName) -> AsyncIterator[Situation]:
        yield Situation(ScriptedModel(), request_for(PROGRAMS[name]))


def said(text: str) -> ModelRequest:
    return ModelRequest(messages=(Message(id="msg_1", role="user", content=text),))


async def ask(model: ScriptedModel, request: ModelRequest | None = None) -> list[ModelEvent]:
    return [event async for event in model.stream(request or said("three words here"))]


async def test_a_list_of_replies_answers_in_turn() -> None:
    """Each request gets one reply; a matching Finish is added where it is missing."""
    call = Call(ToolCall(id="1", name="roll"))
    model = ScriptedModel([[call], "You rolled a six."])
    first, second = await ask(model), await ask(model)
    assert first == [call, Finish(reason="tool_calls", usage=Usage(input_tokens=3), model="scripted")]
    assert second[0] == Text("You ")
    assert second[-1] == Finish(usage=Usage(input_tokens=3, output_tokens=4), model="scripted")
    assert len(model.requests) == 2


async def test_a_list_that_is_used_up_fails() -> None:
    """With the error of a provider that is not there."""
    with pytest.raises(ModelError, match="no more replies"):
        await ask(ScriptedModel([]))


async def test_a_function_answers_by_the_request() -> None:
    """It is given the whole request."""
    model = ScriptedModel(lambda request: request.messages[-1].content.upper())
    assert await ask(model, said("loud")) == [
        Text("LOUD"),
        Finish(usage=Usage(input_tokens=1, output_tokens=1), model="scripted"),
    ]


async def test_exceptions_are_raised_at_their_position() -> None:
    """Any exception, after what stands before it, and no Finish."""
    model = ScriptedModel([["Half", RuntimeError("broken")]])
    events: list[ModelEvent] = []
    with pytest.raises(RuntimeError, match="broken"):
        async for event in model.stream(said("x")):
            events.append(event)
    assert events == [Text("Half")]


async def test_a_reply_can_wait_for_an_event() -> None:
    """A test thus decides when the model continues, without sleeping."""
    gate = anyio.Event()
    model = ScriptedModel([["before ", gate.wait, "after"]])
    events: list[ModelEvent] = []

    async def collect() -> None:
        async for event in model.stream(said("x")):
            events.append(event)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect)
        await anyio.wait_all_tasks_blocked()
        assert events == [Text("before ")]
        gate.set()
    assert events[1] == Text("after")


async def test_streams_that_were_closed_early_are_counted() -> None:
    """A test can see that the caller let go."""
    model = ScriptedModel()
    stream = model.stream(said("slow:100"))
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    assert model.closed == 1


async def test_results_are_quoted_and_faults_have_their_codes() -> None:
    """The programs mean the same as on the scripted provider."""
    model = ScriptedModel()
    events = await ask(model, ModelRequest(messages=conversation_after_calls()))
    assert "".join(e.text for e in events if isinstance(e, Text)) == "look said: waves\nlisten said: a breeze"
    with pytest.raises(ModelError) as caught:
        await ask(model, said("overflow"))
    assert caught.value.code == ErrorCode.CONTEXT_OVERFLOW


async def test_once_counts_per_conversation() -> None:
    """The second time the fault is gone; another conversation starts with the fault."""
    model = ScriptedModel()
    with pytest.raises(ModelError):
        await ask(model, said("once:cut:1 ;; say:x"))
    assert (await ask(model, said("once:cut:1 ;; say:x")))[0] == Text("x")


async def test_events_of_tools_run_elsewhere_pass() -> None:
    """A reply may hold any event."""
    ran = ToolRan(ToolCall(id="1", name="search"), "found")
    assert (await ask(ScriptedModel([[ran, "ok"]])))[0] == ran
