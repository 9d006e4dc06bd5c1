"""The scripted API against OpenAI's own SDK: its types read what is served, and its rules hold."""

import json
from typing import Any

import openai
import pytest
from openai.types import CreateEmbeddingResponse
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import InputTokenCountResponse, Response, ResponseStreamEvent
from pydantic import TypeAdapter

from trunkline.testing.script import RanTools, Say, ScriptedCall, Think, answer, answer_by_message
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.vendor_apis.openai_rules import find_violations

PROGRAM = 'think:Where? ;; say:I look. ;; parallel:look {"at": "sea"} listen {"to": "wind"}'
TOOLS = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in ("look", "listen")]
EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def client(provider: ScriptedProvider) -> openai.OpenAI:
    return openai.OpenAI(api_key="sk-x", base_url=provider.url, max_retries=0)


def hosted(heard: Any) -> Any:
    """An answer after which each hosted tool ran."""
    ran = [
        RanTools(ScriptedCall(name, {"query": "sea", "code": "1"}), "out")
        for name in ("web_search", "file_search", "code_interpreter", "image_generation")
    ]
    return answer(Think("Hm."), *ran, Say("Calm."))


@pytest.mark.parametrize("script", [answer_by_message, hosted], ids=["program", "hosted"])
def test_events_of_responses_are_of_the_sdks_types(script: Any) -> None:
    """Each event and the whole answer, strictly."""
    with ScriptedProvider(script) as provider:
        asked: dict[str, Any] = {
            "model": "gpt-5", "input": PROGRAM, "tools": TOOLS, "store": False,
            "include": ["reasoning.encrypted_content"],
        }  # fmt: skip
        with client(provider).responses.with_streaming_response.create(**asked, stream=True) as stream:
            lines = [line for line in stream.iter_lines() if line.startswith("data: ")]
        events = [EVENTS.validate_python(json.loads(line[6:])) for line in lines]
        whole = client(provider).responses.create(**asked)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    [item] = [
        event.item
        for event in events
        if event.type == "response.output_item.done" and event.output_index == 0
    ]
    assert item.type == "reasoning"
    assert item.encrypted_content
    assert Response.model_validate(whole.to_dict(), strict=True).output


def test_chunks_are_of_the_sdks_types() -> None:
    """Those of OpenRouter's form too; its additions are extra fields."""
    with ScriptedProvider() as provider:
        for model in ("gpt-5", "anthropic/claude"):
            asked = client(provider).chat.completions.with_streaming_response
            messages: Any = [{"role": "user", "content": PROGRAM}]
            with asked.create(model=model, messages=messages, stream=True) as stream:
                lines = [line for line in stream.iter_lines() if line.startswith("data: {")]
            chunks = [ChatCompletionChunk.model_validate(json.loads(line[6:])) for line in lines]
            assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_embeddings_and_counts_are_of_the_sdks_types() -> None:
    """The SDK asks for base64 by itself and gets the same vectors."""
    with ScriptedProvider() as provider:
        sdk = client(provider)
        coded = sdk.embeddings.create(model="m", input=["one", "two"], dimensions=4)
        plain = sdk.embeddings.create(model="m", input="two", dimensions=4, encoding_format="float")
        counted = sdk.responses.input_tokens.count(model="gpt-5", input="one two three")
    assert CreateEmbeddingResponse.model_validate(plain.to_dict())
    assert coded.data[1].embedding == plain.data[0].embedding
    assert InputTokenCountResponse.model_validate(counted.to_dict()).input_tokens == 3


USER = {"role": "user", "content": "x"}
FUNCTION = {"type": "function", "function": {"name": "look"}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ASSISTANT = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "waves"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "other"}
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}


def schema(given: Any, **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "a", "schema": given, "strict": True, **more}}


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("chat/completions", {"tool_choice": "auto"}, "tool_choice"),
        ("chat/completions", {"tool_choice": "any", "tools": [FUNCTION]}, "tool_choice"),
        (
            "chat/completions",
            {"tool_choice": {"type": "function", "function": {"name": "listen"}}, "tools": [FUNCTION]},
            "tool_choice",
        ),
        (
            "responses",
            {"tool_choice": {"type": "allowed_tools", "mode": "none", "tools": []}, "tools": TOOLS},
            "tool_choice.mode",
        ),
        ("chat/completions", {"response_format": {"type": "json_object"}}, "response_format"),
        ("chat/completions", {"response_format": schema(OPEN)}, "response_format.schema"),
        ("chat/completions", {"response_format": schema(OPEN, name="a b")}, "response_format.name"),
        ("responses", {"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ("chat/completions", {"model": "gpt-5", "temperature": 1}, "temperature"),
        ("responses", {"model": "o3", "temperature": 1}, "temperature"),
        ("responses", {"model": "gpt-4.1", "include": ["reasoning.encrypted_content"]}, "include"),
        ("responses", {"input": [USER, REASONING]}, "input[1]"),
        (
            "responses",
            {"input": [REASONING, {"role": "assistant", "content": "x"}]},
            "input[0].encrypted_content",
        ),
        (
            "chat/completions",
            {"model": "deepseek-v4-pro", "messages": [USER, ASSISTANT, RESULT]},
            "messages[1].reasoning_content",
        ),
        (
            "chat/completions",
            {"messages": [USER, {**ASSISTANT, "reasoning_content": "Hm."}, RESULT]},
            "messages[1].reasoning_content",
        ),
        (
            "chat/completions",
            {
                "messages": [
                    {"role": "user", "content": [{"type": "file", "file": {"file_data": "JVBERg=="}}]}
                ]
            },
            "messages[0].content[0].file_data",
        ),
    ],
)
def test_requests_that_openai_refuses_are_violations(path: str, fields: dict[str, Any], param: str) -> None:
    """The first violation names the field in OpenAI's notation."""
    given = {"messages": [USER]} if path == "chat/completions" else {"input": [USER]}
    violations = find_violations(f"/v1/{path}", {"model": "m", **given, **fields})
    assert param in [violation.param for violation in violations]
