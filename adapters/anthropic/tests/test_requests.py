"""What the adapter sends, as the server receives it."""

from typing import Any

import pytest

from trunkline import Image, Message, ToolCall
from trunkline.api.model import (
    DocumentFile,
    ModelError,
    ModelEvent,
    ModelRequest,
    ReasoningBlock,
    ReasoningDone,
    ResponseFormat,
    Text,
    ToolChoice,
)
from trunkline.api.tool import ToolSchema
from trunkline.testing.adapter_suite import conversation_after_calls
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_anthropic.adapter import AnthropicAdapter
from trunkline_anthropic.message_request import build_request
from trunkline_anthropic.settings import AnthropicSettings

pytestmark = pytest.mark.anyio

LOOK = ToolSchema(
    name="look",
    description="Look around.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}},
)
LISTEN = ToolSchema(name="listen", description="Listen.")
MARK = {"type": "ephemeral"}


def user(text: str, **more: Any) -> Message:
    return Message(id=f"msg_{text[:8]}", role="user", content=text, **more)


def said(*texts: str, **more: Any) -> ModelRequest:
    return ModelRequest(messages=tuple(map(user, texts)), **more)


def body(request: ModelRequest, model: str = "claude-sonnet-5-5", **settings: Any) -> dict[str, Any]:
    """The body for Anthropic itself."""
    return build_request(request, model, AnthropicSettings(**{"prompt_cache": False, **settings})).body


async def ask(
    request: ModelRequest, *, models: tuple[str, ...] = ("scripted",), **settings: Any
) -> tuple[list[ModelEvent], Any]:
    """The events of the answer, and the request that the server received."""
    async with ScriptedProvider(models=models).serving() as provider:
        adapter = AnthropicAdapter(
            AnthropicSettings(base_url=provider.address, **{"prompt_cache": False, **settings})
        )
        events: list[ModelEvent] = [event async for event in adapter.stream(request)]
        await adapter.aclose()
        return events, provider.answer_requests[0]


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


# Messages ----------------------------------------------------------------------------------------------------


async def test_tool_results_reach_the_model() -> None:
    """A conversation with calls and results is understood by the server: it quotes each tool's result."""
    events, _ = await ask(ModelRequest(messages=conversation_after_calls()))
    assert text_of(events) == "look said: waves\nlisten said: a breeze"


async def test_all_results_of_an_answer_follow_it_in_one_message() -> None:
    """What the person says after them is in the same message, after the results."""
    messages = (*conversation_after_calls(), user("roles"))
    _, request = await ask(ModelRequest(messages=messages))
    roles = [message["role"] for message in request.body["messages"]]
    assert roles == ["user", "assistant", "user"]
    answer, results = request.body["messages"][1:]
    assert [block["type"] for block in answer["content"]] == ["text", "tool_use", "tool_use"]
    assert answer["content"][1] == {
        "type": "tool_use",
        "id": "call_look",
        "name": "look",
        "input": {"at": "sea"},
    }
    assert results["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "call_look",
        "content": "waves",
    }
    assert [block["type"] for block in results["content"]] == ["tool_result", "tool_result", "text"]


async def test_a_failed_result_is_marked_and_never_empty() -> None:
    """The vendor refuses an error without content; an empty result of a success has none."""
    calls = (ToolCall(id="a", name="look"), ToolCall(id="b", name="listen"))
    messages = (
        user("say:x"),
        Message(id="m2", role="assistant", content="", tool_calls=calls),
        Message(id="m3", role="tool", content="", tool_call_id="a", error=True),
        Message(id="m4", role="tool", content="", tool_call_id="b"),
    )
    _, request = await ask(ModelRequest(messages=messages))
    failed, empty = request.body["messages"][2]["content"]
    assert failed["is_error"]
    assert failed["content"]
    assert empty == {"type": "tool_result", "tool_use_id": "b"}


def test_system_messages_are_blocks_of_their_own() -> None:
    """Those before the conversation are system blocks; a later one stays where it is, marked, in a user's message."""
    messages = (
        Message(id="s1", role="system", content="Be brief."),
        Message(id="s2", role="system", content="Be kind."),
        Message(id="s3", role="system", content=""),
        user("Hello"),
        Message(id="s4", role="system", content="The time is ten."),
        user("roles"),
    )
    sent = body(ModelRequest(messages=messages))
    assert [block["text"] for block in sent["system"]] == ["Be brief.", "Be kind."]
    [message] = sent["messages"]
    assert [block["text"] for block in message["content"]] == [
        "Hello",
        "<system>\nThe time is ten.\n</system>",
        "roles",
    ]


async def test_texts_without_visible_characters_are_left_out() -> None:
    """The vendor refuses them, and messages without content."""
    messages = (
        user("Hello?"),
        Message(id="m2", role="assistant", content=" \n", partial=True),
        user(" "),
        user("roles"),
    )
    events, request = await ask(ModelRequest(messages=messages))
    assert text_of(events) == "user user"
    assert len(request.body["messages"]) == 1


async def test_the_first_message_is_the_users() -> None:
    """A conversation that begins with the assistant gets an opening."""
    messages = (Message(id="m1", role="assistant", content="Welcome."), user("say:hi"))
    events, request = await ask(ModelRequest(messages=messages))
    assert text_of(events) == "hi"
    assert [message["role"] for message in request.body["messages"]] == ["user", "assistant", "user"]
    _, request = await ask(ModelRequest(messages=(Message(id="m1", role="system", content="Hello."),)))
    assert [message["role"] for message in request.body["messages"]] == ["user"]


async def test_names_and_ids_of_other_vendors_are_made_valid() -> None:
    """The result names the same id as its call; the model's call of an offered tool has the tool's own name."""
    odd = ToolCall(id="call:1/ü", name="mcp.look around")
    messages = (
        user('call:mcp_look_around {"at": "sea"}'),
        Message(id="m2", role="assistant", content="", tool_calls=(odd,)),
        Message(id="m3", role="tool", content="waves", tool_call_id=odd.id),
        user('call:mcp_look_around {"at": "sea"}'),
    )
    tool = ToolSchema(name="mcp.look around")
    events, request = await ask(ModelRequest(messages=messages, tools=(tool,)))
    call, result = request.body["messages"][1]["content"][0], request.body["messages"][2]["content"][0]
    assert call["id"] == result["tool_use_id"]
    assert call["name"] == request.body["tools"][0]["name"] == "mcp_look_around"
    assert [event.call.name for event in events if hasattr(event, "call")] == ["mcp.look around"]


async def test_images_and_documents_precede_the_text() -> None:
    """Images and PDF files are sent as base64, text files as text."""
    message = user(
        "say:seen",
        images=(Image(media_type="image/png", data=b"\x89PNG"),),
        documents=(
            DocumentFile(media_type="application/pdf", name="a.pdf", data=b"%PDF-1.7"),
            DocumentFile(media_type="text/markdown", name="b.md", data="Grüße".encode()),
        ),
    )
    events, request = await ask(ModelRequest(messages=(message,)))
    assert text_of(events) == "seen"
    pdf, text, image, last = request.body["messages"][0]["content"]
    assert pdf == {
        "type": "document",
        "title": "a.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjc="},
    }
    assert text["source"] == {"type": "text", "media_type": "text/plain", "data": "Grüße"}
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert last["type"] == "text"
    assert AnthropicAdapter.sees
    assert AnthropicAdapter.reads


def test_a_document_that_the_vendor_cannot_read_is_refused() -> None:
    """The error names the file and what can be read."""
    message = user("x", documents=(DocumentFile(media_type="application/zip", name="a.zip", data=b"PK"),))
    with pytest.raises(ModelError, match=r"a\.zip is application/zip; Anthropic reads PDF and text"):
        body(ModelRequest(messages=(message,)))


async def test_block_conversation_and_turn_are_not_sent() -> None:
    """The request does not say what the call is for."""
    request = said("say:x", block="diary", conversation="conv_secret", turn="turn_secret")
    _, sent = await ask(request)
    assert not {"diary", "conv_secret", "turn_secret"} & set(str(sent.body).split("'"))


# Reasoning ---------------------------------------------------------------------------------------------------


async def test_reasoning_is_sent_back_across_a_tool_call() -> None:
    """The signed block precedes the call of its answer, unchanged; the server checks the signature."""
    program = 'think:Boats rest. ;; say:I look. ;; call:look {"at": "sea"} ;; quote'
    first = said(program, tools=(LOOK,), parameters={"reasoning_effort": "high"})
    async with ScriptedProvider().serving() as provider:
        adapter = AnthropicAdapter(AnthropicSettings(base_url=provider.address, model="scripted"))
        events = [event async for event in adapter.stream(first)]
        blocks = tuple(event.block for event in events if isinstance(event, ReasoningDone))
        [call] = [event.call for event in events if hasattr(event, "call")]
        answer = Message(
            id="m2", role="assistant", content=text_of(events), tool_calls=(call,), reasoning=blocks
        )
        result = Message(id="m3", role="tool", content="waves", tool_call_id=call.id, name="look")
        second = ModelRequest(
            messages=(*first.messages, answer, result), tools=(LOOK,), parameters=first.parameters
        )
        events = [event async for event in adapter.stream(second)]
        await adapter.aclose()
        sent = provider.answer_requests[1].body
    assert text_of(events) == "look said: waves"
    assert [block["type"] for block in sent["messages"][1]["content"]] == ["thinking", "text", "tool_use"]
    assert sent["messages"][1]["content"][0] == blocks[0].data
    assert sent["thinking"] == {"type": "enabled", "budget_tokens": 4096}


def answer_with(*blocks: ReasoningBlock, text: str = "I look.") -> tuple[Message, ...]:
    calls = (ToolCall(id="a", name="look"), ToolCall(id="b", name="listen"))
    return (
        user("say:done"),
        Message(id="m2", role="assistant", content=text, tool_calls=calls, reasoning=blocks),
        Message(id="m3", role="tool", content="waves", tool_call_id="a"),
        Message(id="m4", role="tool", content="a breeze", tool_call_id="b"),
    )


def block_of(model: str, vendor: str = "anthropic", **data: Any) -> ReasoningBlock:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "EqQ", **data}
    return ReasoningBlock(vendor=vendor, model=model, data=thinking)


def test_a_block_of_reasoning_is_sent_where_it_was() -> None:
    """Between text and calls, and between calls; the keys of the place are not sent."""
    model = "claude-sonnet-5-5"
    blocks = (
        block_of(model),
        block_of(model, thinking="Then.", after_text=2),
        block_of(model, thinking="Last.", after_text=7, after_calls=1),
    )
    content = body(ModelRequest(messages=answer_with(*blocks), tools=(LOOK, LISTEN)))["messages"][1][
        "content"
    ]
    kinds = [(block["type"], block.get("text") or block.get("thinking") or block["id"]) for block in content]
    assert kinds == [
        ("thinking", "Hm."), ("text", "I "), ("thinking", "Then."), ("text", "look."),
        ("tool_use", "a"), ("thinking", "Last."), ("tool_use", "b"),
    ]  # fmt: skip
    assert all(
        set(block) == {"type", "thinking", "signature"} for block in content if block["type"] == "thinking"
    )


@pytest.mark.parametrize(
    "block",
    [
        block_of("gpt-5", vendor="openai", type="reasoning"),
        block_of("claude-opus-5"),
        block_of("gemini-3", vendor="google"),
    ],
)
@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-sonnet-5-5", "scripted"])
async def test_reasoning_of_other_models_is_left_out(block: ReasoningBlock, model: str) -> None:
    """A swap in the middle of a turn works, also to a model that requires thinking before a call."""
    request = ModelRequest(
        messages=answer_with(block),
        tools=(LOOK, LISTEN),
        model=model,
        parameters={"reasoning_effort": "high"},
    )
    events, sent = await ask(request)
    assert text_of(events) == "done"
    assert [one["type"] for one in sent.body["messages"][1]["content"]] == ["text", "tool_use", "tool_use"]


def test_reasoning_is_left_out_when_thinking_is_off() -> None:
    """Blocks of an earlier request of the turn stay at home."""
    request = ModelRequest(messages=answer_with(block_of("claude-haiku-5-5")), tools=(LOOK, LISTEN))
    assert body(request, "claude-haiku-5-5")["messages"][1]["content"][0]["type"] == "thinking"
    off = ModelRequest(
        messages=request.messages, tools=request.tools, parameters={"reasoning_effort": "none"}
    )
    assert body(off, "claude-haiku-5-5")["messages"][1]["content"][0]["type"] == "text"


ADAPTIVE = {"type": "adaptive", "display": "summarized"}
BOUND = {**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "sent_effort"),
    [
        ("claude-sonnet-5-5", None, BOUND, None),
        ("claude-sonnet-5-5", "high", BOUND, "high"),
        ("claude-sonnet-5-5", "none", {"type": "between_tools"}, None),
        ("claude-opus-5-5", "none", BOUND, "low"),
        ("claude-fable-5-1", "max", BOUND, "max"),
        ("claude-fable-5", None, ADAPTIVE, None),
        ("claude-opus-5", "xhigh", ADAPTIVE, "xhigh"),
        ("claude-opus-5", "none", {"type": "disabled"}, None),
        ("claude-haiku-5-5", "none", {"type": "disabled"}, None),
        ("claude-opus-4-8", None, None, None),
        ("claude-opus-4-8", "low", ADAPTIVE, "low"),
        ("claude-sonnet-4-6", "xhigh", ADAPTIVE, "high"),
        ("claude-opus-4-6", "none", None, None),
        ("claude-haiku-4-5-20251001", "medium", {"type": "enabled", "budget_tokens": 8192}, None),
        ("claude-haiku-4-5-20251001", "none", None, None),
        ("claude-haiku-4-5", None, None, None),
        ("claude-opus-4-20250514", "max", {"type": "enabled", "budget_tokens": 16_000}, None),
        ("claude-3-5-haiku-20241022", "high", None, None),
        ("claude-next-9", "high", ADAPTIVE, "high"),
        ("anthropic/claude-opus-5", "high", ADAPTIVE, "high"),
        ("qwen3", "low", {"type": "enabled", "budget_tokens": 2048}, None),
    ],
)
def test_reasoning_effort_has_the_form_of_each_model(
    model: str, effort: str | None, thinking: Any, sent_effort: str | None
) -> None:
    """Adaptive with a level of effort, a budget of tokens, or off."""
    parameters = {} if effort is None else {"reasoning_effort": effort}
    sent = body(said("x", parameters=parameters), model)
    assert sent.get("thinking") == thinking
    assert sent.get("output_config", {}).get("effort") == sent_effort


def test_the_budget_of_thinking_leaves_half_of_the_limit() -> None:
    """A limit that leaves less than the vendor's smallest budget switches thinking off."""
    parameters = {"thinking_budget": 9000}
    assert body(said("x", parameters=parameters), "claude-haiku-4-5")["thinking"]["budget_tokens"] == 9000
    small = said("x", parameters=parameters, max_tokens=4000)
    assert body(small, "claude-haiku-4-5")["thinking"]["budget_tokens"] == 2000
    assert "thinking" not in body(said("x", parameters=parameters, max_tokens=1000), "claude-haiku-4-5")


def test_changed_blocks_are_dropped_at_anthropic_only() -> None:
    """Other servers do not know the field."""
    here = build_request(said("x"), "claude-sonnet-5-5", AnthropicSettings())
    assert here.headers == {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
    there = build_request(said("x"), "claude-sonnet-5-5", AnthropicSettings(base_url="http://x"))
    assert there.headers == {}
    assert there.body["thinking"] == ADAPTIVE


# Fields ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("claude-sonnet-5-5", 64_000),
        ("claude-haiku-4-5", 64_000),
        ("claude-opus-4-1", 32_000),
        ("claude-3-haiku-20240307", 4096),
        ("qwen3", 8192),
    ],
)
def test_a_limit_is_always_sent(model: str, limit: int) -> None:
    """That of the request, else of the settings, else of the model."""
    assert body(said("x"), model)["max_tokens"] == limit
    assert body(said("x"), model, max_tokens=100)["max_tokens"] == 100
    assert body(said("x", max_tokens=9), model, max_tokens=100)["max_tokens"] == 9


async def test_a_temperature_is_sent_only_to_models_that_take_one() -> None:
    """Anthropic's API has none any more; another server gets it unless the model thinks."""
    warm = said("say:x", temperature=0.5)
    assert "temperature" not in body(warm, "claude-haiku-4-5")
    there: dict[str, Any] = {"base_url": "http://x"}
    assert body(warm, "qwen3", **there)["temperature"] == 0.5
    assert "temperature" not in body(warm, "claude-opus-5", **there)
    thinking = said("x", temperature=0.5, parameters={"reasoning_effort": "low"})
    assert "temperature" not in body(thinking, "qwen3", **there)
    _, sent = await ask(warm)
    assert sent.body["temperature"] == 0.5


@pytest.mark.parametrize(
    ("choice", "sent", "offered"),
    [
        (ToolChoice(), None, ["look", "listen"]),
        (ToolChoice(tools=("listen",)), None, ["listen"]),
        (ToolChoice(mode="none"), {"type": "none"}, ["look", "listen"]),
        (ToolChoice(mode="required"), {"type": "any"}, ["look", "listen"]),
        (ToolChoice(mode="required", tools=("look", "listen")), {"type": "any"}, ["look", "listen"]),
        (
            ToolChoice(mode="required", tools=("look",)),
            {"type": "tool", "name": "look", "disable_parallel_tool_use": True},
            ["look"],
        ),
    ],
)
async def test_every_tool_choice_has_its_form(choice: ToolChoice, sent: Any, offered: list[str]) -> None:
    """The vendor has no choice among several tools, so only these are offered."""
    events, request = await ask(said("say:x", tools=(LOOK, LISTEN), tool_choice=choice))
    assert text_of(events) == "x"
    assert request.body.get("tool_choice") == sent
    assert [tool["name"] for tool in request.body["tools"]] == offered


def test_a_forced_call_switches_thinking_off() -> None:
    """They exclude each other."""
    forced = said(
        "x",
        tools=(LOOK,),
        tool_choice=ToolChoice(mode="required"),
        parameters={"reasoning_effort": "high"},
    )
    assert "thinking" not in body(forced, "claude-haiku-4-5")
    assert "thinking" not in body(forced, "claude-opus-4-8")
    assert body(forced, "claude-opus-5")["thinking"] == {"type": "disabled"}


async def test_calls_of_a_conversation_without_tools_are_defined() -> None:
    """The vendor refuses calls without definitions. None may be called."""
    _, request = await ask(ModelRequest(messages=conversation_after_calls()))
    assert [tool["name"] for tool in request.body["tools"]] == ["look", "listen"]
    assert request.body["tool_choice"] == {"type": "none"}


def test_a_schema_is_sent_as_the_vendor_enforces_it() -> None:
    """Objects have no other properties; keywords that the vendor does not take are in the description."""
    schema = {
        "type": "object",
        "properties": {
            "age": {"type": "integer", "minimum": 0, "description": "Years."},
            "name": {"type": "string", "format": "date", "pattern": "x"},
            "tags": {"type": "array", "items": {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/Tag"}]}},
        },
        "required": ["age"],
        "additionalProperties": True,
        "$defs": {"Tag": {"type": "object"}},
    }
    wanted = ResponseFormat(schema=schema, description="A person.")
    sent = body(said("x", response_format=wanted))["output_config"]["format"]
    assert sent == {
        "type": "json_schema",
        "schema": {
            "type": "object",
            "properties": {
                "age": {"type": "integer", "description": "Years.\n\n{minimum: 0}"},
                "name": {"type": "string", "format": "date", "description": "{pattern: x}"},
                "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Tag"}]}},
            },
            "required": ["age"],
            "additionalProperties": False,
            "$defs": {"Tag": {"type": "object", "properties": {}, "additionalProperties": False}},
            "description": "A person.",
        },
    }


def test_the_vendor_enforces_only_schemas() -> None:
    """Trunkline enforces any JSON object."""
    adapter = AnthropicAdapter(AnthropicSettings())
    assert not adapter.enforces_format(said("x", response_format=ResponseFormat()))
    assert adapter.enforces_format(said("x", response_format=ResponseFormat(schema={"type": "object"})))


def test_parameters_are_fields_and_those_of_the_request_win() -> None:
    """Under the vendor's names."""
    parameters = {"stop_sequences": ["END"], "service_tier": "auto", "user_id": "u1", "inference_geo": "us"}
    sent = body(said("x", parameters={"service_tier": "standard_only"}), parameters=parameters)
    assert sent["stop_sequences"] == ["END"]
    assert sent["service_tier"] == "standard_only"
    assert sent["inference_geo"] == "us"
    assert sent["metadata"] == {"user_id": "u1"}
    single = said("x", tools=(LOOK,), parameters={"disable_parallel_tool_use": True})
    assert body(single)["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


def test_extra_body_wins() -> None:
    """What is configured as extra_body is added and replaces what the adapter would send."""
    sent = body(said("x"), extra_body={"max_tokens": 5, "speed": "fast"})
    assert (sent["max_tokens"], sent["speed"]) == (5, "fast")


# Prompt cache ------------------------------------------------------------------------------------------------


def test_the_stable_prefix_is_marked_for_the_prompt_cache() -> None:
    """The last tool, the last system block and the last two user messages, four marks at most."""
    messages = (
        Message(id="s1", role="system", content="Be brief."),
        Message(id="s2", role="system", content="Be kind."),
        user("One"),
        Message(id="a1", role="assistant", content="1"),
        *conversation_after_calls(),
        user("Two"),
    )
    sent = body(ModelRequest(messages=messages, tools=(LOOK, LISTEN)), prompt_cache=True)
    marked = [
        (place, number)
        for place in ("tools", "system")
        for number, block in enumerate(sent[place])
        if "cache_control" in block
    ]
    assert marked == [("tools", 1), ("system", 1)]
    turns = [
        (number, at, block["cache_control"])
        for number, message in enumerate(sent["messages"])
        for at, block in enumerate(message["content"])
        if "cache_control" in block
    ]
    assert turns == [(2, 0, MARK), (4, 2, MARK)]
    assert "cache_control" not in str(body(ModelRequest(messages=messages, tools=(LOOK,))))


async def test_usage_includes_what_the_cache_read_and_wrote() -> None:
    """The vendor's input tokens leave them out, ours include them."""
    async with ScriptedProvider().serving() as provider:
        adapter = AnthropicAdapter(AnthropicSettings(base_url=provider.address, model="m"))
        request = said("think:a b ;; say:one two three")
        finishes = [[event async for event in adapter.stream(request)][-1] for _ in range(2)]
        await adapter.aclose()
    first, second = (finish.usage for finish in finishes)  # type: ignore[union-attr]
    assert (first.input_tokens, first.cache_write_tokens, first.cached_tokens) == (6, 3, 0)
    assert (second.input_tokens, second.cache_write_tokens, second.cached_tokens) == (6, 0, 3)
    assert (first.output_tokens, first.reasoning_tokens) == (5, 2)


# Continuing --------------------------------------------------------------------------------------------------


async def test_a_partial_answer_is_the_last_message() -> None:
    """Without the white space at its end, which the vendor refuses; the model's own is left out then."""
    request = said("say:  calm", partial="The harbour is \n", model="claude-haiku-4-5")
    events, sent = await ask(request)
    assert sent.body["messages"][-1]["role"] == "assistant"
    assert sent.body["messages"][-1]["content"][-1]["text"] == "The harbour is"
    assert text_of(events) == "calm"


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("claude-sonnet-5-5", {}), ("claude-opus-4-8", {}), ("claude-haiku-4-5", {"reasoning_effort": "high"})],
)
def test_a_model_without_prefill_is_told_to_continue(model: str, parameters: dict[str, Any]) -> None:
    """Models of 4.6 and later and models that think refuse a final assistant message."""
    messages = body(said("x", partial="The harb", parameters=parameters), model)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"] == [{"type": "text", "text": "The harb"}]
    assert messages[2]["content"][0]["text"].startswith("Your answer was interrupted there.")


async def test_the_place_of_reasoning_counts_the_partial_text() -> None:
    """The stored answer consists of the partial text and the rest."""
    request = said("say:calm ;; think:Hm.", partial="The harbour is ", model="claude-haiku-4-5")
    events, _ = await ask(request)
    [block] = [event.block for event in events if isinstance(event, ReasoningDone)]
    assert block.data["after_text"] == len("The harbour is calm")


# Other calls -------------------------------------------------------------------------------------------------


async def test_tokens_are_counted_by_the_server() -> None:
    """With the request's messages, system blocks and tools, and without the fields of an answer."""
    async with ScriptedProvider().serving() as provider:
        adapter = AnthropicAdapter(AnthropicSettings(base_url=provider.address, model="m"))
        request = ModelRequest(
            messages=(Message(id="s", role="system", content="Be brief."), user("one two")),
            tools=(LOOK,),
            temperature=0.5,
        )
        assert await adapter.count_tokens(request) == 4
        await adapter.aclose()
        [sent] = provider.requests
    assert set(sent.body) == {"model", "messages", "system", "tools"}


async def test_models_of_all_pages_are_listed() -> None:
    """With their limits and abilities."""
    names = tuple(f"claude-{number}" for number in range(1003))
    async with ScriptedProvider(models=names).serving() as provider:
        adapter = AnthropicAdapter(AnthropicSettings(base_url=provider.address))
        listed = await adapter.models()
        await adapter.aclose()
        assert [request.query for request in provider.requests] == [
            "limit=1000",
            "limit=1000&after_id=claude-999",
        ]
    assert [info.id for info in listed] == list(names)
    assert (listed[0].context_window, listed[0].max_output) == (200_000, 64_000)
    assert listed[0].abilities == {"tools", "images", "documents", "structured", "reasoning"}


async def test_without_a_model_the_first_of_a_compatible_server_is_used() -> None:
    """The list is read once."""
    async with ScriptedProvider(models=("qwen3", "llama3")).serving() as provider:
        adapter = AnthropicAdapter(AnthropicSettings(base_url=f"{provider.url}/"))
        for _ in range(2):
            assert [event async for event in adapter.stream(said("say:x"))]
        await adapter.aclose()
    assert [request.body["model"] for request in provider.answer_requests] == ["qwen3", "qwen3"]
    assert [request.path for request in provider.requests].count("/v1/models") == 1


async def test_the_version_and_the_key_are_those_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compatible server gets the version that all of them know, and the key in both headers."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    _, sent = await ask(said("say:x"))
    assert sent.headers["anthropic-version"] == "2023-06-01"
    assert sent.headers["x-api-key"] == "sk-test"
    assert sent.headers["authorization"] == "Bearer sk-test"
