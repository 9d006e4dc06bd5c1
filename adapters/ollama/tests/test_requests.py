"""The requests of the adapter, as the server receives them."""

from typing import Any

import msgspec
import pytest

from trunkline import Image, Message, ToolCall
from trunkline.api.model import (
    Call,
    ModelError,
    ModelEvent,
    ModelRequest,
    Reasoning,
    ReasoningBlock,
    ReasoningDone,
    ResponseFormat,
    Text,
    ToolChoice,
)
from trunkline.api.tool import ToolSchema
from trunkline.testing.adapter_suite import conversation_after_calls
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_ollama.adapter import OllamaAdapter
from trunkline_ollama.chat_request import chat_body
from trunkline_ollama.settings import OllamaSettings

pytestmark = pytest.mark.anyio

LOOK, LISTEN = ToolSchema(name="look", description="Look around."), ToolSchema(name="listen")
SCHEMA = {"type": "object", "properties": {"calm": {"type": "boolean"}}, "required": ["calm"]}


def message(role: Any, content: str, **more: Any) -> Message:
    return Message(id=f"msg_{role}", role=role, content=content, **more)


def said(text: str, **more: Any) -> ModelRequest:
    return ModelRequest(messages=(message("user", text),), **more)


def body_of(request: ModelRequest, **settings: Any) -> dict[str, Any]:
    return chat_body(request, "m", OllamaSettings(**settings))


async def ask(
    request: ModelRequest, *, models: tuple[str, ...] = ("scripted",), **settings: Any
) -> tuple[list[ModelEvent], Any]:
    """The events of the answer, and the body that the server received."""
    async with ScriptedProvider(models=models).serving() as provider:
        adapter = OllamaAdapter(OllamaSettings(base_url=provider.address, **settings))
        events = [event async for event in adapter.stream(request)]
        await adapter.aclose()
        [sent] = [one for one in provider.requests if one.path == "/api/chat"]
        return events, sent.body


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


async def test_tool_results_reach_the_model() -> None:
    """A conversation with calls and results is understood by the server: it quotes each tool's result."""
    events, body = await ask(ModelRequest(messages=conversation_after_calls()))
    assert text_of(events) == "look said: waves\nlisten said: a breeze"
    assistant, look, listen = body["messages"][1:]
    assert assistant["content"] == "The harbour is calm tonight."
    assert assistant["tool_calls"] == [
        {"id": "call_look", "function": {"index": 0, "name": "look", "arguments": {"at": "sea"}}},
        {"id": "call_listen", "function": {"index": 1, "name": "listen", "arguments": {"to": "wind"}}},
    ]
    assert look == {"role": "tool", "content": "waves", "tool_name": "look", "tool_call_id": "call_look"}
    assert listen["tool_name"] == "listen"


async def test_a_result_without_a_name_has_that_of_its_call() -> None:
    """A transcript of a client may name only the id of the call."""
    call = ToolCall(id="c1", name="look")
    messages = (message("assistant", "", tool_calls=(call,)), message("tool", "waves", tool_call_id="c1"))
    assert body_of(ModelRequest(messages=messages))["messages"][1]["tool_name"] == "look"


async def test_the_request_has_the_fields_of_the_vendor() -> None:
    """Nothing that is not set is sent, except that the server must not cut the conversation."""
    _, body = await ask(said("say:x", model="qwen3:8b"))
    assert body == {
        "model": "qwen3:8b",
        "messages": [{"role": "user", "content": "say:x"}],
        "stream": True,
        "truncate": False,
        "shift": False,
    }


async def test_parameters_go_to_their_places() -> None:
    """Options of the model are in ``options``, the others are fields. Those of the request win."""
    request = said(
        "say:x", max_tokens=9, temperature=0.5, parameters={"seed": 7, "keep_alive": "-1", "truncate": True}
    )
    settings = {"num_ctx": 8192, "seed": 1, "keep_alive": "30m", "temperature": 0.1, "stop": ["END"]}
    _, body = await ask(request, parameters=settings)
    assert body["options"] == {
        "num_ctx": 8192, "seed": 7, "temperature": 0.5, "stop": ["END"], "num_predict": 9,
    }  # fmt: skip
    assert (body["keep_alive"], body["truncate"], body["shift"]) == (-1, True, True)
    assert body_of(said("x"), parameters={"keep_alive": "30m"})["keep_alive"] == "30m"


@pytest.mark.parametrize(
    ("effort", "think"), [("none", False), ("on", True), ("low", "low"), ("medium", "medium"), ("max", "max")]
)
async def test_reasoning_effort_is_think(effort: str, think: object) -> None:
    """The two words that are no levels of the vendor are its booleans."""
    _, body = await ask(said("say:x", parameters={"reasoning_effort": effort}))
    assert body["think"] is think or body["think"] == think


async def test_extra_body_wins_and_adds_its_options() -> None:
    """Fields are replaced, options are added to those of the request."""
    extra = {"logprobs": True, "model": "other", "options": {"seed": 3}}
    body = body_of(said("x", max_tokens=5), extra_body=extra)
    assert (body["logprobs"], body["model"]) == (True, "other")
    assert body["options"] == {"num_predict": 5, "seed": 3}


async def test_images_are_base64() -> None:
    """In the message that has them, without a data URL."""
    seen = message("user", "say:seen", images=(Image(media_type="image/png", data=b"\x89PNG"),))
    events, body = await ask(ModelRequest(messages=(seen,)))
    assert text_of(events) == "seen"
    assert body["messages"] == [{"role": "user", "content": "say:seen", "images": ["iVBORw=="]}]
    assert OllamaAdapter.sees


@pytest.mark.parametrize(
    ("choice", "offered"),
    [
        (ToolChoice(), ["look", "listen"]),
        (ToolChoice(mode="required"), ["look", "listen"]),
        (ToolChoice(mode="required", tools=("listen",)), ["listen"]),
        (ToolChoice(tools=("look",)), ["look"]),
        (ToolChoice(mode="none"), None),
    ],
)
async def test_a_tool_choice_decides_what_is_offered(choice: ToolChoice, offered: list[str] | None) -> None:
    """The vendor has no tool_choice."""
    _, body = await ask(said("say:x", tools=(LOOK, LISTEN), tool_choice=choice))
    names = [tool["function"]["name"] for tool in body["tools"]] if "tools" in body else None
    assert names == offered


async def test_a_tools_schema_is_sent_whole() -> None:
    """Nested properties and unknown keywords stay; a tool without parameters has an empty schema, and a property
    without a schema an empty one.
    """
    nested = {
        "type": "object",
        "properties": {"at": {"anyOf": [{"type": "object", "properties": {"x": {}}}]}},
    }
    anything = {"type": "object", "properties": {"any": True}, "required": ["any"]}
    tools = (
        ToolSchema(name="a", parameters=nested),
        ToolSchema(name="b"),
        ToolSchema(name="c", parameters=anything),
    )
    _, body = await ask(said("say:x", tools=tools))
    first, second, third = (tool["function"]["parameters"] for tool in body["tools"])
    assert first == nested
    assert second == {"type": "object", "properties": {}}
    assert third == {"type": "object", "properties": {"any": {}}, "required": ["any"]}


async def test_a_response_format_is_the_vendors_format() -> None:
    """A schema, or any JSON object."""
    assert OllamaAdapter.structured
    _, body = await ask(said("say:x", response_format=ResponseFormat(schema=SCHEMA)))
    assert body["format"] == SCHEMA
    _, body = await ask(said("say:x", response_format=ResponseFormat()))
    assert body["format"] == "json"


def test_with_tools_the_vendor_does_not_enforce_the_format() -> None:
    """The vendor's format constrains every token, so that no tool could be called. Trunkline enforces it then."""
    adapter = OllamaAdapter(OllamaSettings())
    request = said("x", tools=(LOOK,), response_format=ResponseFormat(schema=SCHEMA))
    assert not adapter.enforces_format(request)
    assert adapter.enforces_format(msgspec.structs.replace(request, tool_choice=ToolChoice(mode="none")))


async def test_system_messages_and_consecutive_messages_are_joined() -> None:
    """One system message at the beginning, roles that alternate; a later system message is part of the user's."""
    messages = (
        message("system", "Be brief."),
        message("system", "Be kind."),
        message("user", "Hello?"),
        message("assistant", "Yes?"),
        message("assistant", "I am here."),
        message("user", "It is Monday.", images=(Image(media_type="image/png", data=b"a"),)),
        message("system", "Mind the gap."),
        message("user", "roles", images=(Image(media_type="image/png", data=b"b"),)),
    )
    _, body = await ask(ModelRequest(messages=messages))
    assert body["messages"] == [
        {"role": "system", "content": "Be brief.\n\nBe kind."},
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": "Yes?\n\nI am here."},
        {
            "role": "user",
            "content": "It is Monday.\n\n<system>\nMind the gap.\n</system>\n\nroles",
            "images": ["YQ==", "Yg=="],
        },
    ]


async def test_an_assistant_message_that_says_nothing_is_left_out() -> None:
    """As after an answer that was cancelled at once."""
    messages = (message("user", "Hello?"), message("assistant", "", partial=True), message("user", "say:x"))
    _, body = await ask(ModelRequest(messages=messages))
    assert body["messages"] == [{"role": "user", "content": "Hello?\n\nsay:x"}]


async def test_a_partial_answer_is_given_back_last() -> None:
    """Only if the settings say that the model's template continues it."""
    assert not OllamaAdapter(OllamaSettings()).continues
    request = said("roles", partial="The harb")
    _, body = await ask(request, continue_final_message=True)
    assert body["messages"][-1] == {"role": "assistant", "content": "The harb"}
    assert OllamaAdapter(OllamaSettings(continue_final_message=True)).continues


async def test_block_conversation_and_turn_are_not_sent() -> None:
    """The purpose of the call stays here."""
    _, body = await ask(said("say:x", block="diary", conversation="conv_secret", turn="turn_secret"))
    assert not {"diary", "conv_secret", "turn_secret"} & set(str(body).split("'"))


# Thinking ----------------------------------------------------------------------------------------------------


async def test_thinking_comes_back_across_a_tool_call() -> None:
    """The block of the answer is in the assistant message of the next request of the turn."""
    events, _ = await ask(said('think:Boats rest. ;; say:I look. ;; call:look {"at": "sea"}', tools=(LOOK,)))
    assert "".join(event.text for event in events if isinstance(event, Reasoning)) == "Boats rest."
    [block] = [event.block for event in events if isinstance(event, ReasoningDone)]
    assert block == ReasoningBlock(vendor="ollama", model="scripted", data={"thinking": "Boats rest."})
    [call] = [event.call for event in events if isinstance(event, Call)]
    messages = (
        message("user", "say:x"),
        message("assistant", "I look.", tool_calls=(call,), reasoning=(block,)),
        message("tool", "waves", tool_call_id=call.id, name="look"),
    )
    _, body = await ask(ModelRequest(messages=messages))
    assert body["messages"][1]["thinking"] == "Boats rest."


async def test_blocks_of_other_vendors_are_left_out() -> None:
    """After a swap in mid-conversation."""
    block = ReasoningBlock(vendor="anthropic", model="claude", data={"thinking": "Hm.", "signature": "x"})
    messages = (
        message("user", "Hi"),
        message("assistant", "Ho", reasoning=(block,)),
        message("user", "say:x"),
    )
    events, body = await ask(ModelRequest(messages=messages))
    assert text_of(events) == "x"
    assert body["messages"][1] == {"role": "assistant", "content": "Ho"}


async def test_ids_that_the_conversation_has_already_are_replaced() -> None:
    """The calls of a turn must differ, or one's result would stand for another."""
    taken = ToolCall(id="call_3_0", name="look")
    past = (
        message("user", "x"),
        message("assistant", "", tool_calls=(taken,)),
        message("tool", "waves", tool_call_id=taken.id, name="look"),
    )
    async with ScriptedProvider(["call:look {}"]).serving() as provider:
        adapter = OllamaAdapter(OllamaSettings(base_url=provider.address, model="m"))
        events = [event async for event in adapter.stream(ModelRequest(messages=past))]
        await adapter.aclose()
    [call] = [event.call for event in events if isinstance(event, Call)]
    assert call.id.startswith("call_")
    assert call.id != taken.id


# Models and vectors ------------------------------------------------------------------------------------------


async def test_without_a_model_the_first_that_answers_is_used() -> None:
    """The server is asked once; models that only make vectors are passed over."""
    async with ScriptedProvider(models=("nomic-embed-text", "qwen3:8b", "llama3")).serving() as provider:
        adapter = OllamaAdapter(OllamaSettings(base_url=provider.address))
        for _ in range(2):
            assert [event async for event in adapter.stream(said("say:x"))]
        await adapter.aclose()
    chats = [request for request in provider.requests if request.path == "/api/chat"]
    assert [request.body["model"] for request in chats] == ["qwen3:8b", "qwen3:8b"]
    assert [request.path for request in provider.requests].count("/api/tags") == 1


async def test_models_have_their_windows_and_abilities() -> None:
    """``num_ctx`` limits the window."""
    async with ScriptedProvider(models=("qwen3:8b", "embeddinggemma")).serving() as provider:
        adapter = OllamaAdapter(OllamaSettings(base_url=provider.address))
        chat, vectors = await adapter.models()
        small = OllamaAdapter(OllamaSettings(base_url=provider.address, parameters={"num_ctx": 4096}))
        assert (await small.models())[0].context_window == 4096
        await adapter.aclose()
        await small.aclose()
    assert (chat.id, chat.context_window) == ("qwen3:8b", 32_768)
    assert chat.abilities == {"tools", "images", "reasoning", "structured"}
    assert vectors.abilities == {"embeddings"}


async def test_a_server_without_models_says_so() -> None:
    """The error has the command that pulls one."""
    async with ScriptedProvider(models=()).serving() as provider:
        adapter = OllamaAdapter(OllamaSettings(base_url=provider.address))
        with pytest.raises(ModelError, match="ollama pull") as caught:
            [event async for event in adapter.stream(said("say:x"))]
        await adapter.aclose()
    assert caught.value.fault == "refused"


async def test_texts_become_vectors() -> None:
    """In their order; the same text has the same vector."""
    async with ScriptedProvider().serving() as provider:
        adapter = OllamaAdapter(OllamaSettings(base_url=provider.address, parameters={"keep_alive": "1h"}))
        found = await adapter.embed(["sea", "wind", "sea"])
        one, two, again = found.vectors
        assert (await adapter.embed([])).vectors == ()
        await adapter.embed(["sea"], model="nomic-embed-text", dimensions=4)
        await adapter.aclose()
    assert one == again != two
    assert (found.usage.input_tokens, found.model) == (3, "embeddinggemma")
    bodies = [request.body for request in provider.requests]
    assert bodies[0] == {"model": "embeddinggemma", "input": ["sea", "wind", "sea"], "keep_alive": "1h"}
    assert (bodies[2]["model"], bodies[2]["dimensions"]) == ("nomic-embed-text", 4)


async def test_a_connection_is_used_again() -> None:
    """The answer is read to its end, so that ten answers need one connection."""
    async with ScriptedProvider().serving() as provider:
        adapter = OllamaAdapter(OllamaSettings(base_url=provider.address, model="m"))
        for _ in range(10):
            assert [event async for event in adapter.stream(said("say:x"))]
        client = adapter._client
        assert client is not None
        pool = client._transport._pool  # type: ignore[attr-defined]
        assert len(pool.connections) == 1
        await adapter.aclose()
