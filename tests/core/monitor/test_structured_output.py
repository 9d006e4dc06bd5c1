"""Answers in a response format, with an adapter whose vendor does not enforce one."""

import json
import threading
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest

from trunkline import Message, ToolCall
from trunkline._util.json_schema import find_schema_problem, find_schema_violation
from trunkline.api.model import (
    Call,
    Finish,
    ModelError,
    ModelEvent,
    ModelRequest,
    Reasoning,
    ResponseFormat,
    Text,
    Usage,
)
from trunkline.workers.monitor.structured_output import ask_in_format

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"sea": {"enum": ["calm", "rough"]}},
    "required": ["sea"],
    "additionalProperties": False,
}
FORMAT = ResponseFormat(name="report", description="The state of the sea.", schema=SCHEMA)
REQUEST = ModelRequest(
    messages=(
        Message(id="msg_1", role="system", content="Be brief."),
        Message(id="msg_2", role="user", content="How is the sea?"),
    ),
    response_format=FORMAT,
)
USAGE = Usage(input_tokens=10, output_tokens=3)


class Model:
    """Answers with these texts, in order."""

    def __init__(self, *answers: str | Sequence[ModelEvent]) -> None:
        self.answers = list(answers)
        self.requests: list[ModelRequest] = []

    async def ask(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        answer = self.answers.pop(0)
        events = (
            (Text(answer[:4]), Text(answer[4:]), Finish(usage=USAGE)) if isinstance(answer, str) else answer
        )
        for event in events:
            yield event


async def events_of(model: Model, request: ModelRequest = REQUEST) -> list[ModelEvent]:
    return [event async for event in ask_in_format(request, model.ask)]


@pytest.mark.anyio
@pytest.mark.parametrize("text", ['{"sea": "calm"}', '  {"sea": "calm"}\n', '```json\n{"sea": "calm"}\n```'])
async def test_a_valid_answer_arrives_once(text: str) -> None:
    """White space and a fence of Markdown are no part of the JSON text."""
    model = Model(text)
    assert await events_of(model) == [Text('{"sea": "calm"}'), Finish(usage=USAGE)]
    (asked,) = model.requests
    assert asked.response_format is None
    assert [message.role for message in asked.messages] == ["system", "system", "user"]
    assert (
        json.dumps(SCHEMA) in asked.messages[1].content
        and "The state of the sea." in asked.messages[1].content
    )


@pytest.mark.anyio
@pytest.mark.parametrize("wrong", ["Calm.", "[]", '{"sea": "wet"}', '{"sea": "calm", "wind": 3}', "", "NaN"])
async def test_an_invalid_answer_is_repaired_once(wrong: str) -> None:
    """The model gets its answer and the reason; nobody sees the invalid text, and both answers are counted."""
    model = Model(wrong, '{"sea": "rough"}')
    assert await events_of(model) == [Text('{"sea": "rough"}'), Finish(usage=USAGE + USAGE)]
    repair = model.requests[1].messages
    assert repair[-1].role == "user" and repair[-1].content.startswith("Your answer is not valid.")
    assert not wrong or repair[-2].content == wrong


@pytest.mark.anyio
async def test_a_second_invalid_answer_is_an_error() -> None:
    """A client that asked for a format never gets anything else as a finished answer."""
    with pytest.raises(ModelError) as raised:
        await events_of(Model("Calm.", '{"sea": "wet"}'))
    assert raised.value.fault == "wrong_format" and "$['sea']" in raised.value.detail


@pytest.mark.anyio
async def test_an_answer_with_calls_is_not_validated() -> None:
    """The text beside a call is no final answer."""
    events: list[ModelEvent] = [
        Reasoning("Hm."), Text("Let me look."), Call(ToolCall(id="1", name="look")), Finish(reason="tool_calls"),
    ]  # fmt: skip
    model = Model(events)
    assert await events_of(model) == [events[0], events[2], events[1], Finish(reason="tool_calls")]
    assert len(model.requests) == 1


@pytest.mark.anyio
async def test_an_answer_that_was_cut_is_passed_on() -> None:
    """The finish reason tells the client that the text is incomplete."""
    cut: list[ModelEvent] = [Text('{"sea"'), Finish(reason="max_tokens", usage=USAGE)]
    assert await events_of(Model(cut)) == cut


@pytest.mark.anyio
async def test_without_a_schema_any_object_is_valid() -> None:
    """``json_object`` of OpenAI."""
    request = ModelRequest(messages=REQUEST.messages, response_format=ResponseFormat())
    assert (await events_of(Model("[1]", '{"any": 1}'), request))[0] == Text('{"any": 1}')


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:1/schema"},
        {"$ref": "file:///etc/passwd"},
        {"type": "robot"},
        {"pattern": "("},
        {"pattern": r"(.)\1"},
    ],
)
def test_a_schema_that_cannot_be_applied_is_refused(schema: dict[str, Any]) -> None:
    """No reference is fetched, and no pattern needs backtracking."""
    assert find_schema_problem(schema)
    assert find_schema_violation("aa", schema).startswith("The schema cannot be applied")


def test_hostile_schemas_cost_little() -> None:
    """Patterns are matched in linear time; deep schemas end with an error, not with the process."""
    began = time.perf_counter()
    assert find_schema_violation("a" * 5_000 + "!", {"pattern": "^(a+)+$"})
    deep: dict[str, Any] = {}
    for _ in range(20_000):
        deep = {"properties": {"a": deep}}
    assert find_schema_problem(deep)
    assert time.perf_counter() - began < 30


def doubled(schema: dict[str, Any], depth: int = 60) -> dict[str, Any]:
    """Return a schema that applies ``schema`` 2 to the power of ``depth`` times."""
    named = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)}
    return {"$defs": {**named, f"d{depth}": schema}, "$ref": "#/$defs/d0"}


def test_a_schema_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few references describe more work than can be done. The work is ended, and no thread is left with it."""
    before = threading.active_count()
    with monkeypatch.context() as impatient:
        impatient.setattr("trunkline._util.json_schema.MAX_SECONDS", 1.0)
        assert "too long" in find_schema_violation("x", doubled({"type": "string"}))
    assert find_schema_violation("x", doubled({"type": "string"}, 4)) == ""
    assert find_schema_violation(7, doubled({"type": "string"}, 4)).startswith("At $: 7 is not")
    assert threading.active_count() == before


def test_patterns_of_a_schema_are_limited() -> None:
    """Each compiled expression takes time and memory, so there is a limit of their size and of their number."""
    many = {f"p{n}": {"pattern": f"x{n}"} for n in range(101)}
    assert "more than 100" in find_schema_problem({"properties": many})
    assert "more than 100" in find_schema_problem({"patternProperties": many})
    assert find_schema_problem({"pattern": "(a{1,300}){1,300}"})
    for pattern in (r"^.{1,255}$", r"^[^@\s]+@[^@\s]+\.[^@\s]+$", r"^[a-zA-Z0-9_-]{1,64}$", r"\w{1,100}"):
        assert find_schema_problem({"pattern": pattern}) == ""


@pytest.mark.anyio
@pytest.mark.parametrize("end", ["x", "```", "\n```x"])
async def test_a_long_answer_of_line_breaks_is_refused_at_once(end: str) -> None:
    """Models in a loop write them. Nothing else in the process waits for such an answer."""
    answer = "```json\n" + "\n" * 200_000 + end
    with anyio.fail_after(30), pytest.raises(ModelError):
        await events_of(Model(answer, answer))
