"""OpenAI's official client asks for structured output and forces tool calls, over HTTP and whole platforms."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

import anyio
import openai
import pydantic
import pytest

import trunkline
from tests.shared_model import SharedModel
from trunkline import ToolCall
from trunkline.api.model import Call, Finish, ModelAdapter, ModelRequest, ToolChoice
from trunkline.testing.platform import platform
from trunkline.testing.scripted_model import ReplyItems

pytestmark = pytest.mark.anyio


class Report(pydantic.BaseModel):
    """What the client wants to know."""

    sea: Literal["calm", "rough"]
    waves: int


class Models:
    """A plugin with one adapter."""

    def __init__(self, model: ModelAdapter) -> None:
        self.model = model

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[tuple[SharedModel, openai.AsyncOpenAI]]:
    """One platform for the tests that ask a model, and a client of it."""
    model = SharedModel()
    config = {"runtime.provider_adapter": "scripted"}
    async with (
        platform(plugins=[Models(model)], config=config) as running,
        openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token, max_retries=0) as client,
    ):
        yield model, client


@pytest.fixture
def model(shared: tuple[SharedModel, openai.AsyncOpenAI]) -> SharedModel:
    """The model that a test gives its script."""
    return shared[0]


@pytest.fixture
def client(shared: tuple[SharedModel, openai.AsyncOpenAI]) -> openai.AsyncOpenAI:
    """The client of the shared platform."""
    return shared[1]


ASK: Any = [{"role": "user", "content": "How is the sea?"}]
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("look", "listen")
]


@pytest.mark.parametrize("structured", [False, True], ids=["repaired", "enforced"])
async def test_a_client_gets_an_object_of_its_type(
    model: SharedModel, client: openai.AsyncOpenAI, structured: bool
) -> None:
    """``parse`` returns the client's type, whether the vendor enforces the format or Trunkline does."""
    answers = ['{"sea": "calm", "waves": 3}']
    if not structured:
        answers.insert(0, "The sea is calm.")
    model.begin(answers, structured=structured)
    answer = await client.chat.completions.parse(model="main", messages=ASK, response_format=Report)
    assert answer.choices[0].message.parsed == Report(sea="calm", waves=3)
    format = model.requests[0].response_format
    assert (format is not None and format.strict and format.name == "Report") is structured


async def test_a_stream_has_only_valid_text(model: SharedModel, client: openai.AsyncOpenAI) -> None:
    """The text of a streamed answer is complete and valid, too."""
    model.begin(["```json\n{}\n```", '{"sea": "rough", "waves": 9}'])
    async with client.chat.completions.stream(model="main", messages=ASK, response_format=Report) as stream:
        answer = await stream.get_final_completion()
    assert answer.choices[0].message.parsed == Report(sea="rough", waves=9)


async def test_an_answer_that_stays_invalid_is_an_error(
    model: SharedModel, client: openai.AsyncOpenAI
) -> None:
    """No client takes an invalid text for an answer."""
    model.begin(lambda request: "Calm.")
    with pytest.raises(openai.InternalServerError) as refused:
        await client.chat.completions.create(
            model="main", messages=ASK, response_format={"type": "json_object"}
        )
    assert refused.value.code == "provider_error"


@pytest.mark.parametrize(
    ("choice", "sent", "offered"),
    [
        ("required", ToolChoice(mode="required", tools=("look", "listen")), {"look", "listen"}),
        (
            TOOLS[1] | {"function": {"name": "listen"}},
            ToolChoice(mode="required", tools=("listen",)),
            {"listen"},
        ),
        ("auto", ToolChoice(), {"look", "listen"}),
        ("none", ToolChoice(), set()),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOLS[0]]}},
            ToolChoice(),
            {"look"},
        ),
    ],
    ids=["required", "named", "auto", "none", "allowed"],
)
async def test_every_tool_choice_reaches_the_model(
    model: SharedModel, client: openai.AsyncOpenAI, choice: Any, sent: ToolChoice, offered: set[str]
) -> None:
    """The client's tools that the choice permits are offered; Trunkline's own tools stay."""

    def script(request: ModelRequest) -> ReplyItems:
        if request.tool_choice.mode == "required":
            return [
                Call(ToolCall(id="call_1", name=request.tool_choice.tools[-1])),
                Finish(reason="tool_calls"),
            ]
        return "Calm."

    model.begin(script)
    answer = await client.chat.completions.create(model="main", messages=ASK, tools=TOOLS, tool_choice=choice)
    (request,) = model.requests
    assert request.tool_choice == sent
    assert {"look", "listen"} & {tool.name for tool in request.tools} == offered
    assert answer.choices[0].finish_reason == ("tool_calls" if sent.mode == "required" else "stop")


async def test_a_model_that_never_keeps_the_format_is_asked_twice(
    model: SharedModel, client: openai.AsyncOpenAI
) -> None:
    """The answer and one repair: nothing else repeats the call, and the client learns the reason."""
    model.begin(["Calm."] * 9)
    with pytest.raises(openai.InternalServerError) as failed:
        await client.chat.completions.create(
            model="main", messages=ASK, response_format={"type": "json_object"}
        )
    assert "not in the response format" in str(failed.value)
    assert len(model.requests) == 2 and model.requests[1].tool_choice.mode == "none"


async def test_without_a_model_a_format_ends_with_an_error() -> None:
    """The offline adapter answers in sentences. It does not search again and again for a better answer."""
    async with (
        platform() as running,
        openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token, max_retries=0) as client,
    ):
        with anyio.fail_after(60), pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(
                model="main", messages=ASK, response_format={"type": "json_object"}
            )
