"""``tool_choice: required`` holds, also with a model whose vendor does not enforce it."""

from collections.abc import AsyncIterator, Sequence

import httpx
import pytest

import trunkline
from trunkline import Message, ToolCall
from trunkline.api.model import (
    Call,
    Finish,
    ModelAdapter,
    ModelError,
    ModelEvent,
    ModelRequest,
    Text,
    ToolChoice,
    Usage,
)
from trunkline.api.tool import ToolSchema
from trunkline.testing.platform import platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.workers.monitor.tool_choice import ask_for_call

pytestmark = pytest.mark.anyio

USAGE = Usage(input_tokens=10, output_tokens=3)
CALL = Call(ToolCall(id="c", name="look"))
REFUSAL: tuple[ModelEvent, ...] = (Text("I would "), Text("rather not."), Finish(usage=USAGE))
REQUEST = ModelRequest(
    messages=(Message(id="m", role="user", content="Look"),),
    tools=(ToolSchema(name="look", description="", parameters={}),),
    tool_choice=ToolChoice(mode="required"),
)


class Model:
    """Answers with these events, in order."""

    def __init__(self, *answers: Sequence[ModelEvent]) -> None:
        self.answers = list(answers)
        self.requests: list[ModelRequest] = []

    async def ask(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        for event in self.answers.pop(0):
            yield event


async def events_of(model: Model) -> list[ModelEvent]:
    return [event async for event in ask_for_call(REQUEST, model.ask)]


async def test_an_answer_with_a_call_arrives_as_it_is() -> None:
    """The model is asked once, and its text arrives with the call."""
    done = Finish(reason="tool_calls", usage=USAGE)
    model = Model((Text("I look."), CALL, done))
    assert await events_of(model) == [Text("I look."), CALL, done]


async def test_a_model_that_called_no_tool_is_asked_once_more() -> None:
    """Nothing of the first answer is shown. Usage is that of both; the model reads which tools it may call."""
    model = Model(REFUSAL, (CALL, Finish(reason="tool_calls", usage=USAGE)))
    assert await events_of(model) == [CALL, Finish(reason="tool_calls", usage=USAGE + USAGE)]
    answer, said = model.requests[1].messages[-2:]
    assert (answer.role, answer.content) == ("assistant", "I would rather not.")
    assert said.role == "user" and "look" in said.content


async def test_a_second_answer_without_a_call_is_an_error() -> None:
    """A client that requires a call does not get a text in its place. A cut answer is told by its reason."""
    with pytest.raises(ModelError, match="calls no tool") as failed:
        await events_of(Model(REFUSAL, REFUSAL))
    assert failed.value.fault == "wrong_format"
    cut = (Text("I"), Finish(reason="max_tokens", usage=USAGE))
    assert await events_of(Model(cut)) == list(cut)


async def test_a_client_gets_the_call_that_it_requires() -> None:
    """Over HTTP, with an adapter whose vendor has no ``tool_choice``."""

    class Plugin:
        model = ScriptedModel([["no"], [Call(ToolCall(id="c", name="look")), Finish(reason="tool_calls")]])

        @trunkline.hookimpl
        def trunkline_models(self) -> Sequence[ModelAdapter]:
            return [self.model]

    config = {"runtime.provider_adapter": "scripted"}
    async with platform(plugins=[Plugin()], config=config) as running, httpx.AsyncClient(timeout=60) as http:
        reply = await http.post(
            f"{running.url}/v1/chat/completions",
            headers={"Authorization": f"Bearer {running.token}"},
            json={
                "model": "main",
                "messages": [{"role": "user", "content": "Look"}],
                "tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}],
                "tool_choice": "required",
            },
        )
    assert reply.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "look"
