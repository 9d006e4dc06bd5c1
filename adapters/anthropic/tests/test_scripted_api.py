"""The scripted API against the vendor's own SDK and types, and its rules."""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic.types import MessageTokensCount, RawMessageStreamEvent
from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming
from pydantic import TypeAdapter

from trunkline import Image, Message, ToolCall
from trunkline.api.model import DocumentFile, ModelRequest, ReasoningBlock, ResponseFormat, ToolChoice
from trunkline.api.tool import ToolSchema
from trunkline.testing.adapter_suite import PROGRAMS
from trunkline.testing.script import HeardMessage, Say, ScriptedRequest, Stop, Think, answer_by_message
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.vendor_apis.anthropic_messages import MessagesWireFormat, sign
from trunkline.testing.vendor_apis.anthropic_rules import find_violations
from trunkline_anthropic.message_request import build_request
from trunkline_anthropic.settings import AnthropicSettings

HEADERS = {"anthropic-version": "2026-10-21", "x-api-key": "k"}
TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(models=("claude-a", "claude-b", "claude-c")) as server:
        yield server


@pytest.fixture
def client(provider: ScriptedProvider) -> Iterator[anthropic.Anthropic]:
    """The SDK with strict validation of what it receives."""
    with anthropic.Anthropic(
        base_url=provider.address, api_key="k", max_retries=0, _strict_response_validation=True
    ) as made:
        yield made


def ask(program: str) -> Any:
    return {
        "model": "scripted",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": program}],
        "tools": [TOOL],
    }


# The vendor's types ------------------------------------------------------------------------------------------


def events_of(program: str) -> Iterator[dict[str, Any]]:
    """Every event of the answer as it is sent."""
    heard = ScriptedRequest(lines=(HeardMessage("user", program),), body={"model": "m"})
    wire = MessagesWireFormat(heard, 1)
    data = wire.begin()
    for step in answer_by_message(heard):
        match step:
            case Say(text):
                data += wire.text(text)
            case Think(text):
                data += wire.reasoning(text)
            case Stop(reason):
                data += wire.stop(reason)
            case _:
                data += b"".join(wire.calls(step.calls))  # type: ignore[union-attr]
    for block in data.decode().split("\n\n"):
        if block:
            name, _, text = block.partition("\n")
            event = json.loads(text.removeprefix("data: "))
            assert name == f"event: {event['type']}"
            yield event


@pytest.mark.parametrize("name", ["text", "reasoning", "calls", "text_and_calls", "limit"])
def test_every_event_has_the_vendors_type(name: str) -> None:
    """Strictly: no wrong type and no missing field. A ping is no event of the types."""
    types: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
    events = [event for event in events_of(PROGRAMS[name]) if event["type"] != "ping"]  # type: ignore[index]
    assert events[0]["type"] == "message_start"
    assert events[-1]["type"] == "message_stop"
    for event in events:
        types.validate_python(event, strict=True)


def test_the_sdk_streams_an_answer(client: anthropic.Anthropic) -> None:
    """Its accumulated message has the signed thinking, the text and the calls."""
    with client.messages.stream(**ask('think:Hm. ;; say:I look. ;; call:look {"at": "sea"}')) as stream:
        message = stream.get_final_message()
    thinking, text, call = message.content
    assert thinking.model_dump() == {"type": "thinking", "thinking": "Hm.", "signature": sign("Hm.")}
    assert text.text == "I look."  # type: ignore[union-attr]
    assert call.input == {"at": "sea"}  # type: ignore[union-attr]
    assert (message.stop_reason, message.usage.output_tokens) == ("tool_use", 3)


def test_the_sdk_reads_a_whole_answer(client: anthropic.Anthropic) -> None:
    """Without streaming."""
    message = client.messages.create(**ask('think:Hm. ;; say:I look. ;; call:look {"at": "sea"}'))
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]


def test_the_sdk_lists_all_models(client: anthropic.Anthropic, provider: ScriptedProvider) -> None:
    """Page by page."""
    listed = [model.id for model in client.models.list(limit=2)]
    assert listed == ["claude-a", "claude-b", "claude-c"]
    assert len(provider.requests) == 2


def test_the_sdk_counts_tokens(client: anthropic.Anthropic) -> None:
    """The count is that of the words."""
    count = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "one two"}])
    assert count == MessageTokensCount(input_tokens=2)


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("status:401", anthropic.AuthenticationError),
        ("status:403", anthropic.PermissionDeniedError),
        ("status:404", anthropic.NotFoundError),
        ("status:413", anthropic.RequestTooLargeError),
        ("status:429", anthropic.RateLimitError),
        ("status:500", anthropic.InternalServerError),
        ("status:529", anthropic.OverloadedError),
        ("overflow", anthropic.BadRequestError),
    ],
)
def test_the_sdk_knows_every_error(
    client: anthropic.Anthropic, program: str, error: type[anthropic.APIStatusError]
) -> None:
    """With the vendor's type in the body."""
    with pytest.raises(error) as caught:
        client.messages.create(**ask(program))
    assert caught.value.type


def test_the_body_of_every_kind_of_request_has_the_vendors_type() -> None:
    """The types are those of the beta, which has the field of bound thinking."""
    types: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsStreaming)
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "EqQ"}
    for model in ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-4-5", "claude-opus-5"):
        for choice in (ToolChoice(), ToolChoice(mode="none"), ToolChoice(mode="required", tools=("look",))):
            messages = (
                Message(id="m0", role="system", content="Be brief."),
                Message(
                    id="m1",
                    role="user",
                    content="Look.",
                    images=(Image(media_type="image/png", data=b"x"),),
                    documents=(DocumentFile(media_type="application/pdf", name="a", data=b"x"),),
                ),
                Message(
                    id="m2",
                    role="assistant",
                    content="I look.",
                    tool_calls=(ToolCall(id="a", name="look"),),
                    reasoning=(ReasoningBlock(vendor="anthropic", model=model, data=thinking),),
                ),
                Message(id="m3", role="tool", content="waves", tool_call_id="a", error=True),
            )
            request = ModelRequest(
                messages=messages,
                tools=(ToolSchema(name="look"),),
                tool_choice=choice,
                response_format=ResponseFormat(schema={"type": "object"}),
                parameters={"reasoning_effort": "high", "stop_sequences": ["END"], "user_id": "u"},
            )
            built = build_request(request, model, AnthropicSettings())
            types.validate_python(built.body)
            assert not find_violations({**HEADERS, **built.headers}, built.body) or choice.mode == "required"


# The vendor's rules ------------------------------------------------------------------------------------------


def call(id: str = "a", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "look", "input": {}, **more}


def result(id: str = "a", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "waves", **more}


USER = {"role": "user", "content": "x"}


def answer(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def results(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": sign("Hm.")}
MARK = {"cache_control": {"type": "ephemeral"}}
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}

BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "no limit": ({"max_tokens": None}, "max_tokens: Field required"),
    "no message": ({"messages": []}, "at least one message"),
    "assistant first": ({"messages": [answer({"type": "text", "text": "x"})]}, "must use the `user` role"),
    "role": ({"messages": [USER, {"role": "tool", "content": "x"}]}, "Input should be 'user'"),
    "same role twice": ({"messages": [USER, USER]}, "follows a message with the role"),
    "empty text": ({"messages": [results({"type": "text", "text": ""})]}, "must be non-empty"),
    "blank text": ({"messages": [results({"type": "text", "text": " "})]}, "non-whitespace"),
    "empty content": ({"messages": [USER, answer(), USER]}, "non-empty content"),
    "bad id": ({"messages": [USER, answer(call("a:1")), results(result("a:1"))]}, "should match pattern"),
    "id twice": (
        {"messages": [USER, answer(call(), call()), results(result(), result())]},
        "ids must be unique",
    ),
    "bad name": ({"messages": [USER, answer(call(name="a.b")), results(result())]}, "should match pattern"),
    "bad input": ({"messages": [USER, answer(call(input="x")), results(result())]}, "valid dictionary"),
    "no result": ({"messages": [USER, answer(call()), USER]}, "without `tool_result` blocks immediately"),
    "no result at the end": ({"messages": [USER, answer(call())]}, "without `tool_result` blocks"),
    "result of no call": ({"messages": [results(result())]}, "unexpected `tool_use_id`"),
    "result after a text": (
        {"messages": [USER, answer(call()), results({"type": "text", "text": "x"}, result())]},
        "must come first",
    ),
    "empty error": (
        {"messages": [USER, answer(call()), results(result(content="", is_error=True))]},
        "cannot be empty if `is_error`",
    ),
    "no tools": ({"tools": [], "messages": [USER, answer(call()), results(result())]}, "must define tools"),
    "tool twice": ({"tools": [TOOL, TOOL]}, "must be unique"),
    "tool's name": ({"tools": [{**TOOL, "name": "a.b"}]}, "does not match the pattern"),
    "tool's schema": ({"tools": [{**TOOL, "input_schema": {}}]}, "input_schema.type"),
    "unknown tool": ({"tool_choice": {"type": "tool", "name": "sing"}}, "not found in provided tools"),
    "forced with thinking": ({**BUDGET, "tool_choice": {"type": "any"}}, "may not be enabled when"),
    "forced": ({"model": "claude-opus-5-5", "tool_choice": {"type": "any"}}, "not supported for this model"),
    "signature": (
        {"messages": [USER, answer({**SIGNED, "thinking": "Ha."}, call()), results(result())]},
        "Invalid `signature`",
    ),
    "no signature": (
        {"messages": [USER, answer({**SIGNED, "signature": ""}, call()), results(result())]},
        "signature: Field required",
    ),
    "no thinking": ({**BUDGET, "messages": [USER, answer(call()), results(result())]}, "Expected `thinking`"),
    "small budget": ({"thinking": {"type": "enabled", "budget_tokens": 9}}, "equal to 1024"),
    "large budget": ({**BUDGET, "max_tokens": 1024}, "must be greater than `thinking.budget_tokens`"),
    "budget of a new model": (
        {**BUDGET, "model": "claude-opus-5"},
        '"thinking.type.enabled" is not supported',
    ),
    "binding": ({"thinking": {"type": "adaptive", "block_binding": {}}}, "Extra inputs"),
    "temperature": ({"temperature": 0.5}, "temperature: Extra inputs"),
    "five marks": (
        {"system": [{"type": "text", "text": "x", **MARK}] * 5},
        "A maximum of 4 blocks may be provided. Found 5",
    ),
    "prefill": (
        {"model": "claude-opus-5", "messages": [USER, answer({"type": "text", "text": "x"})]},
        "does not support assistant message prefill",
    ),
    "prefill with thinking": (
        {**BUDGET, "messages": [USER, answer({"type": "text", "text": "x"})]},
        "prefill is not supported when thinking",
    ),
    "trailing space": ({"messages": [USER, answer({"type": "text", "text": "x "})]}, "trailing whitespace"),
    "image": (
        {
            "messages": [
                results(
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/bmp", "data": "eA=="},
                    }
                )
            ]
        },
        "Input should be image/gif or",
    ),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_rule_is_found(name: str) -> None:
    """Each rule by a request that violates it."""
    change, message = BROKEN[name]
    body = {**ask("x"), "model": "claude-haiku-4-5", **change}
    found = [str(violation) for violation in find_violations(HEADERS, body)]
    assert [one for one in found if message in one], found


def test_a_request_that_keeps_the_rules_is_accepted() -> None:
    """With a call, its result, signed thinking and four marks."""
    body = {
        **ask("x"),
        **BUDGET,
        "model": "claude-haiku-4-5",
        "system": [{"type": "text", "text": "x", **MARK}],
        "messages": [USER, answer(SIGNED, call()), results(result(**MARK), {"type": "text", "text": "x"})],
    }
    assert find_violations(HEADERS, body) == ()
    assert find_violations({}, body)


def test_a_refused_request_has_the_vendors_body(
    client: anthropic.Anthropic, provider: ScriptedProvider
) -> None:
    """Status 400 and the type invalid_request_error; the server ends with an error unless a test removes it."""
    with pytest.raises(anthropic.BadRequestError, match="non-whitespace") as caught:
        client.messages.create(**ask(" "))
    assert caught.value.type == "invalid_request_error"
    assert len(provider.faults) == 1
    provider.faults.clear()
