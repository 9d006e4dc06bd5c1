"""The requests of the adapter, as the server receives them."""

from contextlib import aclosing
from typing import Any

import pytest

from trunkline import Image, Message, ToolCall
from trunkline.api.model import ModelEvent, ModelRequest, Text
from trunkline.api.tool import ToolSchema
from trunkline.testing.adapter_suite import conversation_after_calls
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.settings import OpenAISettings

pytestmark = pytest.mark.anyio

both_apis = pytest.mark.parametrize("api", ["chat", "responses"])


def said(text: str, **more: Any) -> ModelRequest:
    return ModelRequest(messages=(Message(id="msg_1", role="user", content=text),), **more)


async def ask(
    request: ModelRequest, *, models: tuple[str, ...] = ("scripted",), **settings: Any
) -> tuple[str, Any]:
    """The text of the answer, and the body that the server got."""
    async with ScriptedProvider(models=models).serving() as provider:
        adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url, **settings))
        events: list[ModelEvent] = [event async for event in adapter.stream(request)]
        await adapter.aclose()
        return "".join(event.text for event in events if isinstance(event, Text)), provider.answer_requests[
            0
        ].body


@both_apis
async def test_tool_results_reach_the_model(api: str) -> None:
    """A conversation with calls and results is understood by the server: it can quote each tool's result."""
    text, _ = await ask(ModelRequest(messages=conversation_after_calls()), api=api)
    assert text == "look said: waves\nlisten said: a breeze"


async def test_chat_keeps_text_and_calls_of_one_message_together() -> None:
    """Text and calls of one answer are one assistant message (PA-F14), and results name their call."""
    _, body = await ask(ModelRequest(messages=conversation_after_calls()), api="chat")
    assistant, look, listen = body["messages"][1:]
    assert assistant["content"] == "The harbour is calm tonight."
    assert [call["id"] for call in assistant["tool_calls"]] == ["call_look", "call_listen"]
    assert assistant["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "sea"}'}
    assert look == {"role": "tool", "tool_call_id": "call_look", "content": "waves"}
    assert listen["tool_call_id"] == "call_listen"


async def test_responses_puts_a_message_with_calls_as_items() -> None:
    """The text comes first, then each call, then each output."""
    _, body = await ask(ModelRequest(messages=conversation_after_calls()), api="responses")
    kinds = [item.get("type", item.get("role")) for item in body["input"]]
    assert kinds == ["user", "assistant", "function_call", "function_call", *["function_call_output"] * 2]
    assert body["input"][2] == {
        "type": "function_call",
        "call_id": "call_look",
        "name": "look",
        "arguments": '{"at": "sea"}',
    }
    assert body["store"] is False


async def test_chat_sends_options_under_the_names_that_servers_know() -> None:
    """Tools, limit and temperature go along; usage is asked for."""
    tool = ToolSchema(name="look", description="Look around.")
    _, body = await ask(said("say:x", tools=(tool,), max_tokens=9, temperature=0.5, model="m"), api="chat")
    assert body["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("m", 9, 0.5)
    assert body["stream_options"] == {"include_usage": True}


async def test_responses_sends_options_under_its_own_names() -> None:
    """Responses calls the limit max_output_tokens and has tools without nesting."""
    tool = ToolSchema(name="look", description="Look around.")
    _, body = await ask(said("say:x", tools=(tool,), max_tokens=9), api="responses", model="m")
    assert body["tools"][0]["name"] == "look"
    assert (body["model"], body["max_output_tokens"]) == ("m", 9)


@both_apis
async def test_extra_body_wins(api: str) -> None:
    """The configured extra_body is added, and replaces the adapter's own fields."""
    _, body = await ask(said("say:x"), api=api, extra_body={"seed": 7, "model": "other"})
    assert (body["seed"], body["model"]) == (7, "other")


@both_apis
async def test_a_partial_answer_is_given_back_last(api: str) -> None:
    """A server that continues an answer gets the model's partial text as the last message."""
    _, body = await ask(said("roles", partial="The harb"), api=api, continue_final_message=True)
    assert (body.get("messages") or body["input"])[-1] == {"role": "assistant", "content": "The harb"}


async def test_an_empty_assistant_message_is_left_out() -> None:
    """Servers refuse assistant messages that say nothing."""
    messages = (
        Message(id="msg_1", role="user", content="Hello?"),
        Message(id="msg_2", role="assistant", content="", partial=True),
        Message(id="msg_3", role="user", content="roles"),
    )
    assert (await ask(ModelRequest(messages=messages), api="chat"))[0] == "user user"
    assert (await ask(ModelRequest(messages=messages), api="responses"))[0] == "user user"


async def test_block_conversation_and_turn_are_not_sent() -> None:
    """The purpose of a call is not sent to the vendor."""
    request = said("say:x", block="diary", conversation="conv_secret", turn="turn_secret")
    _, body = await ask(request, api="chat")
    assert not {"diary", "conv_secret", "turn_secret"} & set(str(body).split("'"))


async def test_ids_that_the_conversation_has_already_are_replaced() -> None:
    """Some servers give every call the same id; the calls of a turn need distinct ids, or a result would belong to
    the wrong call."""
    before = ToolCall(id="call_1_0", name="look")
    messages = (Message(id="msg_1", role="user", content="call:look {}"),)
    past = (
        Message(id="msg_0", role="assistant", content="", tool_calls=(before,)),
        Message(id="msg_0r", role="tool", content="waves", tool_call_id=before.id),
    )
    async with ScriptedProvider(["call:look {}"]).serving() as provider:
        adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url, model="m"))
        async with aclosing(adapter.stream(ModelRequest(messages=(*past, *messages)))) as events:  # type: ignore[type-var]
            [call] = [event.call async for event in events if hasattr(event, "call")]
        await adapter.aclose()
    assert call.id.startswith("call_")
    assert call.id != before.id


async def test_without_a_model_the_first_chat_model_of_the_server_is_used() -> None:
    """GET /models is asked once; models for embeddings are passed over."""
    async with ScriptedProvider(models=("nomic-embed-text", "qwen3:8b", "llama3")).serving() as provider:
        adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url))
        for _ in range(2):
            assert [event async for event in adapter.stream(said("say:x"))]
        assert [info.id for info in await adapter.models()] == ["nomic-embed-text", "qwen3:8b", "llama3"]
        await adapter.aclose()
    assert [request.body["model"] for request in provider.answer_requests] == ["qwen3:8b", "qwen3:8b"]
    assert [request.path for request in provider.requests].count("/v1/models") == 2


async def test_a_server_with_a_base_url_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a base_url and no key a placeholder is sent, and nothing of the environment's organisations."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-private")
    async with ScriptedProvider().serving() as provider:
        adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url))
        assert [event async for event in adapter.stream(said("say:x"))]
        await adapter.aclose()
    headers = provider.answer_requests[0].headers
    assert headers["authorization"] == "Bearer no-key-needed"
    assert "openai-organization" not in headers


@both_apis
async def test_pictures_are_sent_as_data_urls(api: str) -> None:
    """The form is that of each API, behind the text; a message without pictures is sent as before."""
    message = Message(
        id="msg_1", role="user", content="say:seen", images=(Image(media_type="image/png", data=b"\x89PNG"),)
    )
    text, body = await ask(ModelRequest(messages=(message,)), api=api)
    assert text == "seen"
    (sent,) = body.get("messages") or body["input"]
    address = "data:image/png;base64,iVBORw=="
    assert (
        sent["content"]
        == {
            "chat": [
                {"type": "text", "text": "say:seen"},
                {"type": "image_url", "image_url": {"url": address}},
            ],
            "responses": [
                {"type": "input_text", "text": "say:seen"},
                {"type": "input_image", "image_url": address},
            ],
        }[api]
    )
    assert OpenAIAdapter.sees
