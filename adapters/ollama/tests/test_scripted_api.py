"""The scripted API against the vendor's own client and types, and its rules."""

import json
from collections.abc import Iterator
from typing import Any

import ollama
import pytest
from ollama import ChatResponse, EmbedResponse, ListResponse, ProgressResponse, ShowResponse
from ollama._client import _copy_messages
from ollama._types import ChatRequest
from pydantic import BaseModel

from trunkline import Image, Message, ToolCall
from trunkline.api.model import ModelRequest, ReasoningBlock, ResponseFormat
from trunkline.api.tool import ToolSchema
from trunkline.testing.adapter_suite import PROGRAMS, SituationName
from trunkline.testing.script import (
    CallTools,
    HeardMessage,
    Say,
    ScriptedRequest,
    Stop,
    Think,
    answer_by_message,
)
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.vendor_apis.ollama_chat import UNKNOWN_MODEL, OllamaChatWireFormat
from trunkline.testing.vendor_apis.ollama_rules import find_violations
from trunkline_ollama.chat_request import chat_body
from trunkline_ollama.settings import OllamaSettings

TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
}


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(models=("qwen3:8b", "embeddinggemma")) as server:
        yield server


@pytest.fixture
def client(provider: ScriptedProvider) -> Iterator[ollama.Client]:
    with ollama.Client(host=provider.address) as made:
        yield made


def ask(program: str) -> Any:
    return {"model": "m", "messages": [{"role": "user", "content": program}], "tools": [TOOL]}


# The vendor's types ------------------------------------------------------------------------------------------


def lines_of_answer(program: str) -> Iterator[dict[str, Any]]:
    """Every line of the answer as it is sent."""
    heard = ScriptedRequest(lines=(HeardMessage("user", program),), body={"model": "m"})
    wire = OllamaChatWireFormat(heard, 1)
    data = wire.begin()
    for step in answer_by_message(heard):
        match step:
            case Say(text):
                data += wire.text(text)
            case Think(text):
                data += wire.reasoning(text)
            case CallTools(calls):
                data += b"".join(wire.calls(calls))
            case Stop(reason):
                data += wire.stop(reason)
    yield from map(json.loads, data.splitlines())


def unknown_fields(given: Any, kind: type[BaseModel]) -> set[str]:
    """The fields of a document that the type does not have."""
    names = {field.alias or name for name, field in kind.model_fields.items()}
    return set(given) - names


@pytest.mark.parametrize("name", ["text", "reasoning", "calls", "text_and_calls", "limit"])
def test_every_line_has_the_vendors_type(name: SituationName) -> None:
    """Strictly: no wrong type, and no unknown field."""
    lines = list(lines_of_answer(PROGRAMS[name]))
    assert [line["done"] for line in lines] == [*(False for _ in lines[1:]), True]
    for line in lines:
        ChatResponse.model_validate(line, strict=True)
        assert unknown_fields(line, ChatResponse) == set()


def test_the_client_streams_an_answer(client: ollama.Client) -> None:
    """Thinking, text and calls, then the counts."""
    program = 'think:Hm. ;; say:I look. ;; call:look {"at": "sea"}'
    parts = list(client.chat(**ask(program), stream=True))
    assert "".join(part.message.thinking or "" for part in parts) == "Hm."
    assert "".join(part.message.content or "" for part in parts) == "I look."
    [call] = [call for part in parts for call in part.message.tool_calls or ()]
    assert (call.function.name, call.function.arguments) == ("look", {"at": "sea"})
    assert (parts[-1].done_reason, parts[-1].eval_count) == ("stop", 3)


def test_the_client_reads_a_whole_answer(client: ollama.Client) -> None:
    """Without streaming."""
    answer = client.chat(**ask('think:Hm. ;; say:I look. ;; call:look {"at": "sea"}'))
    assert (answer.message.thinking, answer.message.content) == ("Hm.", "I look.")
    assert answer.message.tool_calls is not None


def test_a_call_that_the_server_cannot_parse_is_text(client: ollama.Client) -> None:
    """As the vendor's server gives it."""
    answer = client.chat(**ask("badcall:look at the sea"))
    assert not answer.message.tool_calls
    assert answer.message.content == '{"name": "look", "arguments": at the sea}'


def test_the_client_lists_and_shows_models(client: ollama.Client) -> None:
    """With their windows and capabilities."""
    listing: ListResponse = client.list()
    assert [model.model for model in listing.models] == ["qwen3:8b", "embeddinggemma"]
    shown: ShowResponse = client.show("qwen3:8b")
    assert shown.capabilities == ["completion", "tools", "vision", "thinking"]
    assert shown.modelinfo is not None
    assert shown.modelinfo["scripted.context_length"] == 32_768
    assert client.show("embeddinggemma").capabilities == ["embedding"]


def test_the_client_makes_vectors(client: ollama.Client) -> None:
    """Of length 1, and the same for the same text."""
    answer: EmbedResponse = client.embed("embeddinggemma", ["sea", "wind", "sea"])
    sea, wind, again = answer.embeddings
    assert list(sea) == list(again) != list(wind)
    assert sum(number * number for number in sea) == pytest.approx(1)
    assert list(client.embed("embeddinggemma", "sea").embeddings[0]) == list(sea)


def test_the_client_pulls_a_model(client: ollama.Client) -> None:
    """Line by line, or at once; one that does not exist fails."""
    parts: list[ProgressResponse] = list(client.pull("qwen3:8b", stream=True))
    assert parts[0].status == "pulling manifest"
    assert parts[-1].status == "success"
    assert client.pull("qwen3:8b").status == "success"
    with pytest.raises(ollama.ResponseError, match="file does not exist"):
        list(client.pull(UNKNOWN_MODEL, stream=True))


@pytest.mark.parametrize(
    ("program", "status", "message"),
    [
        ("status:404", 404, "model 'm' not found"),
        ("status:500", 500, "Scripted error 500."),
        ("overflow", 400, "longer than the context length"),
    ],
)
def test_the_client_reads_errors(client: ollama.Client, program: str, status: int, message: str) -> None:
    """In the vendor's shape, with its status."""
    with pytest.raises(ollama.ResponseError, match=message) as caught:
        list(client.chat(**ask(program), stream=True))
    assert caught.value.status_code == status


def test_the_adapters_request_has_the_vendors_type() -> None:
    """Strictly, and without fields that the type does not have, except those that only the server knows."""
    call = ToolCall(id="c1", name="look", arguments={"at": "sea"})
    block = ReasoningBlock(vendor="ollama", model="m", data={"thinking": "Hm."})
    messages = (
        Message(id="1", role="system", content="Be brief."),
        Message(id="2", role="user", content="x", images=(Image(media_type="image/png", data=b"\x89PNG"),)),
        Message(id="3", role="assistant", content="", tool_calls=(call,), reasoning=(block,)),
        Message(id="4", role="tool", content="waves", tool_call_id="c1", name="look"),
    )
    parameters = {"reasoning_effort": "low", "keep_alive": "30m", "num_ctx": 8192}
    for more in ({"tools": (ToolSchema(name="look"),)}, {"response_format": ResponseFormat()}):
        request = ModelRequest(messages=messages, parameters=parameters, max_tokens=5, **more)  # type: ignore[arg-type]
        body = chat_body(request, "m", OllamaSettings())
        ChatRequest.model_validate(body)
        assert unknown_fields(body, ChatRequest) == {"truncate", "shift"}
        list(_copy_messages(body["messages"]))  # validates each of them
        for message in body["messages"]:
            assert unknown_fields(message, ollama.Message) <= {"tool_call_id"}


# The rules ---------------------------------------------------------------------------------------------------

USER = {"role": "user", "content": "x"}
CALLING = {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]}


def violated(**body: Any) -> list[str]:
    given = {"model": "m", "messages": [USER], **body}
    return [violation.param for violation in find_violations("/api/chat", given)]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": ""}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "developer", "content": "x"}]}, "messages[0].role"),
        ({"messages": [USER, {"role": "system", "content": "x"}]}, "messages[1].role"),
        ({"messages": [USER, USER]}, "messages[1].role"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content"),
        ({"messages": [{**USER, "thinking": "Hm."}]}, "messages[0].thinking"),
        ({"messages": [{**USER, "images": ["data:image/png;base64,aa=="]}]}, "messages[0].images[0]"),
        ({"messages": [USER, {"role": "assistant", "content": ""}]}, "messages[1].content"),
        ({"messages": [USER, CALLING, {"role": "tool", "content": "y"}]}, "messages[2].tool_name"),
        (
            {"messages": [{**CALLING, "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            {"messages": [{**CALLING, "tool_calls": [{"function": {"arguments": {}}}]}]},
            "messages[0].tool_calls[0].function.name",
        ),
        ({"think": "xhigh"}, "think"),
        ({"format": "xml"}, "format"),
        ({"keep_alive": "30"}, "keep_alive"),
        ({"stream": "yes"}, "stream"),
        ({"options": []}, "options"),
        ({"options": {"num_ctx": "8192"}}, "options.num_ctx"),
        ({"options": {"temperature": True}}, "options.temperature"),
        ({"options": {"use_mmap": 1}}, "options.use_mmap"),
        ({"options": {"stop": "END"}}, "options.stop"),
        ({"options": {"num_cxt": 1}}, "options.num_cxt"),
        ({"tools": [{"function": {"name": "a", "parameters": {"properties": {}}}}]}, "tools[0].type"),
        (
            {"tools": [{"type": "function", "function": {"name": "a", "parameters": {}}}]},
            "tools[0].function.parameters",
        ),
        ({"tools": [{**TOOL, "function": {**TOOL["function"], "name": ""}}]}, "tools[0].function.name"),  # type: ignore[dict-item]
    ],
)
def test_a_wrong_request_is_refused(body: dict[str, Any], param: str) -> None:
    """With the name of the field."""
    assert violated(**body) == [param]


def test_right_requests_are_taken() -> None:
    """Every field in its forms."""
    for think in (True, False, "low", "max"):
        for kept in (0, -1, "30m", "1h30m"):
            for wanted in ("json", {"type": "object"}):
                assert violated(think=think, keep_alive=kept, format=wanted) == []


def test_a_wrong_request_is_told_at_the_end() -> None:
    """The server refuses it with 400 in the vendor's shape, and the test fails."""
    with (
        pytest.raises(AssertionError, match="Ollama: messages: there is no message"),
        ScriptedProvider() as server,
    ):
        with ollama.Client(host=server.address) as client, pytest.raises(ollama.ResponseError) as caught:
            client.chat("m", [])
        assert caught.value.status_code == 400
