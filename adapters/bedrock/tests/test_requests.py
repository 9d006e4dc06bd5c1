"""What the adapter sends, as the server receives it."""

import base64
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
    Text,
    ToolChoice,
)
from trunkline.api.tool import ToolSchema
from trunkline.testing.adapter_suite import SENTENCE, conversation_after_calls
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.vendor_apis.bedrock_messages import sign_reasoning
from trunkline_bedrock.adapter import BedrockAdapter
from trunkline_bedrock.message_content import ATTACHED, EMPTY_RESULT, OPENING, RECEIVED, document_name
from trunkline_bedrock.message_request import CONTINUE, NO_CALLS, build_request
from trunkline_bedrock.settings import BedrockSettings

pytestmark = pytest.mark.anyio

CLAUDE_4_5 = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
CLAUDE_5_5 = "global.anthropic.claude-sonnet-5-5"
CLAUDE_5 = "eu.anthropic.claude-opus-5"
CLAUDE_4_7 = "us.anthropic.claude-opus-4-7"
CLAUDE_FABLE = "us.anthropic.claude-fable-5"
CLAUDE_3 = "anthropic.claude-3-haiku-20240307-v1:0"
NOVA_2 = "us.amazon.nova-2-lite-v1:0"
NOVA = "amazon.nova-pro-v1:0"
GPT_OSS = "openai.gpt-oss-120b-1:0"
LLAMA = "us.meta.llama3-3-70b-instruct-v1:0"
PROFILE = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123def456"

LOOK = ToolSchema(name="look", description="Look around.", parameters={"type": "object", "properties": {}})
LISTEN = ToolSchema(name="listen", description="Listen.")
CACHE_POINT = {"cachePoint": {"type": "default"}}


def said(text: str, **more: Any) -> ModelRequest:
    return ModelRequest(messages=(Message(id="msg_1", role="user", content=text),), **more)


async def ask(request: ModelRequest, **settings: Any) -> tuple[list[ModelEvent], Any]:
    """The events of the answer, and the body that the server received."""
    with ScriptedProvider() as provider:
        adapter = BedrockAdapter(
            BedrockSettings(endpoint_url=provider.address, region="us-east-1", **settings)
        )
        events: list[ModelEvent] = [event async for event in adapter.stream(request)]
        await adapter.aclose()
        return events, provider.answer_requests[0].body


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


def plain(body: Any) -> Any:
    """The request without cache points."""
    if isinstance(body, dict):
        return {key: plain(value) for key, value in body.items()}
    return [plain(one) for one in body if one != CACHE_POINT] if isinstance(body, list) else body


async def test_tool_results_reach_the_model() -> None:
    """All results of an answer are in one user message, and the model can quote each of them."""
    events, body = await ask(
        ModelRequest(messages=conversation_after_calls(), tools=(LOOK, LISTEN)), model="scripted"
    )
    assert text_of(events) == "look said: waves\nlisten said: a breeze"
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert body["messages"][1]["content"][0] == {"text": SENTENCE}
    assert body["messages"][2]["content"] == [
        {"toolResult": {"toolUseId": "call_look", "content": [{"text": "waves"}]}},
        {"toolResult": {"toolUseId": "call_listen", "content": [{"text": "a breeze"}]}},
    ]


async def test_system_messages_before_the_conversation_are_system_blocks() -> None:
    """A later one is part of a user message, and consecutive user messages are one."""
    messages = (
        Message(id="msg_1", role="system", content="Be brief."),
        Message(id="msg_2", role="system", content=" "),
        Message(id="msg_3", role="user", content="Context."),
        Message(id="msg_4", role="system", content="Now in English."),
        Message(id="msg_5", role="user", content="say:x"),
    )
    _, body = await ask(ModelRequest(messages=messages), model="scripted")
    assert body["system"] == [{"text": "Be brief."}]
    [message] = body["messages"]
    assert [block["text"] for block in message["content"]] == [
        "Context.", "<system>\nNow in English.\n</system>", "say:x",
    ]  # fmt: skip


async def test_a_conversation_that_begins_with_the_assistant_is_valid() -> None:
    """The vendor requires one."""
    messages = (
        Message(id="msg_1", role="assistant", content="Good morning!"),
        Message(id="msg_2", role="user", content="say:x"),
    )
    _, body = await ask(ModelRequest(messages=messages), model="scripted")
    assert body["messages"][0] == {"role": "user", "content": [{"text": OPENING}]}


async def test_blank_texts_are_not_sent() -> None:
    """An empty answer is left out; an empty result gets a text."""
    call = ToolCall(id="call_1", name="look")
    messages = (
        Message(id="msg_1", role="user", content="Hello?"),
        Message(id="msg_2", role="assistant", content=" ", partial=True),
        Message(id="msg_3", role="user", content="Look."),
        Message(id="msg_4", role="assistant", content="", tool_calls=(call,)),
        Message(id="msg_5", role="tool", content="", tool_call_id="call_1", name="look"),
        Message(id="msg_6", role="user", content="say:x"),
    )
    _, body = await ask(ModelRequest(messages=messages), model="scripted")
    first, answer, last = body["messages"]
    assert first["content"] == [{"text": "Hello?"}, {"text": "Look."}]
    assert list(answer["content"][0]) == ["toolUse"]
    assert last["content"][0]["toolResult"]["content"] == [{"text": EMPTY_RESULT}]


async def test_ids_and_names_of_other_vendors_are_made_valid() -> None:
    """The same id for call and result; a called name that no tool has is allowed."""
    call = ToolCall(id="call|from|elsewhere" * 9, name="ask a model!")
    messages = (
        Message(id="msg_1", role="user", content="Ask."),
        Message(id="msg_2", role="assistant", content="", tool_calls=(call,)),
        Message(id="msg_3", role="tool", content="no such tool", tool_call_id=call.id, error=True),
    )
    _, body = await ask(ModelRequest(messages=messages), model=CLAUDE_4_5)
    block = body["messages"][1]["content"][0]["toolUse"]
    result = body["messages"][2]["content"][0]["toolResult"]
    assert (block["name"], result["toolUseId"], result["status"]) == (
        "ask_a_model_",
        block["toolUseId"],
        "error",
    )
    assert {tool["toolSpec"]["name"] for tool in plain(body)["toolConfig"]["tools"]} == {"ask_a_model_"}
    assert body["system"][0] == {"text": NO_CALLS}


async def test_names_of_tools_come_back_as_trunkline_has_them() -> None:
    """The vendor takes letters, digits, underscores and hyphens only."""
    tool = ToolSchema(name="memory.search", description="Search.")
    events, body = await ask(said("call:memory_search {}", tools=(tool,)), model="scripted")
    assert body["toolConfig"]["tools"][0]["toolSpec"]["name"] == "memory_search"
    assert [event.call.name for event in events if hasattr(event, "call")] == ["memory.search"]


async def test_images_and_documents_are_sent_as_bytes() -> None:
    """With their formats, and with names that the vendor takes."""
    files = Message(
        id="msg_1",
        role="user",
        content="",
        images=(Image(media_type="image/jpeg", data=b"\xff\xd8picture"),),
        documents=(
            DocumentFile(media_type="application/pdf", name="my_report.pdf", data=b"%PDF"),
            DocumentFile(media_type="text/x-python", name="my report.pdf", data=b"pass"),
        ),
    )
    _, body = await ask(ModelRequest(messages=(files,)), model="scripted")
    report, source, image, text = body["messages"][0]["content"]
    assert (report["document"]["format"], report["document"]["name"]) == ("pdf", "my report pdf")
    assert (source["document"]["format"], source["document"]["name"]) == ("txt", "my report pdf 2")
    assert base64.b64decode(image["image"]["source"]["bytes"]) == b"\xff\xd8picture"
    assert image["image"]["format"] == "jpeg"
    assert text == {"text": ATTACHED}


def test_names_of_documents_have_the_vendors_characters() -> None:
    """Whatever the name of the file is."""
    assert document_name("Übersicht  (2026)\n[final].pdf", set()) == "bersicht (2026) [final] pdf"
    assert document_name("…", set()) == "document"
    assert len(document_name("a" * 500, set())) < 200


async def test_a_document_that_the_vendor_does_not_read_is_refused() -> None:
    """Nothing is sent."""
    movie = DocumentFile(media_type="video/mp4", name="film.mp4", data=b"x")
    message = Message(id="msg_1", role="user", content="x", documents=(movie,))
    with pytest.raises(ModelError, match="video/mp4") as caught:
        await ask(ModelRequest(messages=(message,)), model="scripted")
    assert caught.value.fault == "refused"


@pytest.mark.parametrize(
    ("choice", "expected", "names"),
    [
        (ToolChoice(), None, ["look", "listen"]),
        (ToolChoice(tools=("look",)), None, ["look"]),
        (ToolChoice(mode="required"), {"any": {}}, ["look", "listen"]),
        (ToolChoice(mode="required", tools=("listen",)), {"tool": {"name": "listen"}}, ["listen"]),
        (ToolChoice(mode="required", tools=("look", "listen")), {"any": {}}, ["look", "listen"]),
    ],
)
async def test_every_tool_choice_has_the_vendors_form(
    choice: ToolChoice, expected: Any, names: list[str]
) -> None:
    """Only permitted tools are offered."""
    _, body = await ask(said("say:x", tools=(LOOK, LISTEN), tool_choice=choice), model=CLAUDE_4_5)
    config = plain(body)["toolConfig"]
    assert config.get("toolChoice") == expected
    assert [tool["toolSpec"]["name"] for tool in config["tools"]] == names


async def test_a_model_that_cannot_be_forced_gets_only_the_tool() -> None:
    """``any`` with one tool is the same."""
    choice = ToolChoice(mode="required", tools=("look",))
    _, body = await ask(said("say:x", tools=(LOOK, LISTEN), tool_choice=choice), model=GPT_OSS)
    assert body["toolConfig"]["toolChoice"] == {"any": {}}
    assert len(body["toolConfig"]["tools"]) == 1


async def test_no_tools_are_sent_for_an_answer_without_calls() -> None:
    """Converse requires the tools then, and the model is told not to call any."""
    none = ToolChoice(mode="none")
    _, body = await ask(said("say:x", tools=(LOOK,), tool_choice=none), model="scripted")
    assert "toolConfig" not in body
    request = ModelRequest(messages=conversation_after_calls(), tools=(LOOK, LISTEN), tool_choice=none)
    _, body = await ask(request, model="scripted")
    assert len(body["toolConfig"]["tools"]) == 2
    assert body["system"] == [{"text": NO_CALLS}]


async def test_limits_and_parameters_have_the_vendors_names() -> None:
    """Those of the request override those of the settings."""
    request = said("say:x", max_tokens=9, temperature=0.5, parameters={"top_p": 0.5, "service_tier": "flex"})
    _, body = await ask(
        request,
        model=CLAUDE_3,
        parameters={"top_p": 0.9, "stop_sequences": ["END"], "latency": "optimized"},
        extra_fields={"top_k": 5},
    )
    assert body["inferenceConfig"] == {
        "maxTokens": 9,
        "temperature": 0.5,
        "topP": 0.5,
        "stopSequences": ["END"],
    }
    assert body["serviceTier"] == {"type": "flex"}
    assert body["performanceConfig"] == {"latency": "optimized"}
    assert body["additionalModelRequestFields"] == {"top_k": 5}


async def test_a_guardrail_is_sent() -> None:
    """As the vendor has it."""
    guardrail = {"guardrailIdentifier": "gr-1", "guardrailVersion": "DRAFT"}
    _, body = await ask(said("say:x"), model="scripted", parameters={"guardrail": guardrail})
    assert body["guardrailConfig"] == guardrail


@pytest.mark.parametrize(
    ("model", "effort", "fields", "level"),
    [
        (CLAUDE_4_5, "medium", {"thinking": {"type": "enabled", "budget_tokens": 8192}}, None),
        (CLAUDE_4_5, "none", None, None),
        (CLAUDE_4_5, None, None, None),
        (CLAUDE_4_7, "xhigh", {"thinking": {"type": "adaptive", "display": "summarized"}}, "xhigh"),
        (CLAUDE_4_7, None, None, None),
        (CLAUDE_5, "none", {"thinking": {"type": "disabled"}}, None),
        (CLAUDE_5_5, "none", {"thinking": {"type": "between_tools"}}, None),
        (CLAUDE_FABLE, "none", {"thinking": {"type": "adaptive", "display": "summarized"}}, "low"),
        (CLAUDE_3, "high", None, None),
        (NOVA_2, "high", {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}, None),
        (NOVA_2, "max", {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}, None),
        (NOVA_2, "none", None, None),
        (NOVA, "high", None, None),
        (GPT_OSS, "medium", {"reasoning_effort": "medium"}, None),
        (GPT_OSS, "none", {"reasoning_effort": "low"}, None),
    ],
)
async def test_the_effort_has_the_form_of_the_model(
    model: str, effort: str | None, fields: Any, level: str | None
) -> None:
    """A temperature and a limit that the model would refuse then are left out."""
    parameters = {} if effort is None else {"reasoning_effort": effort}
    request = said("say:x", parameters=parameters, model=model, temperature=0.5, max_tokens=50_000)
    _, body = await ask(request)
    assert body.get("additionalModelRequestFields") == fields
    assert body.get("outputConfig") == (None if level is None else {"effort": level})


async def test_base_model_names_the_model_behind_an_arn() -> None:
    """An ARN does not say which model it is."""
    settings = {"model": PROFILE, "base_model": CLAUDE_4_5, "parameters": {"thinking_budget": 2000}}
    _, body = await ask(said("say:x"), **settings)
    assert body["additionalModelRequestFields"]["thinking"]["budget_tokens"] == 2000
    assert body["messages"][0]["content"][-1] == CACHE_POINT


async def test_a_forced_call_switches_thinking_off() -> None:
    """Claude refuses both together."""
    request = said(
        "say:x",
        tools=(LOOK,),
        tool_choice=ToolChoice(mode="required"),
        parameters={"reasoning_effort": "high"},
    )
    for model in (CLAUDE_4_5, CLAUDE_4_7, CLAUDE_5):
        _, body = await ask(request, model=model)
        thinking = body.get("additionalModelRequestFields", {}).get("thinking", {})
        assert thinking.get("type") in (None, "disabled")


async def test_reasoning_is_sent_back_unchanged_after_results() -> None:
    """The scripted API refuses another signature, and the blocks of other vendors and models are left out."""
    request = said("think:Boats rest. ;; say:I look. ;; call:look {}", tools=(LOOK,))
    parameters = {"reasoning_effort": "low"}
    events, _ = await ask(request, model=CLAUDE_4_5, parameters=parameters)
    blocks = tuple(event.block for event in events if isinstance(event, ReasoningDone))
    [call] = [event.call for event in events if hasattr(event, "call")]
    expected = {"text": "Boats rest.", "signature": sign_reasoning("Boats rest.")}
    assert [block.data for block in blocks] == [{"reasoningText": expected}]
    foreign = (
        ReasoningBlock(vendor="openai", model="gpt-5", data={"id": "rs_1"}),
        ReasoningBlock(
            vendor="aws.bedrock", model=NOVA_2, data={"reasoningText": {"text": "x", "signature": "y"}}
        ),
    )
    answer = Message(
        id="msg_2", role="assistant", content="I look.", tool_calls=(call,), reasoning=(*foreign, *blocks)
    )
    result = Message(id="msg_3", role="tool", content="waves", tool_call_id=call.id, name="look")
    after = ModelRequest(messages=(*request.messages, answer, result), tools=(LOOK,))
    events, body = await ask(after, model=CLAUDE_4_5.replace("us.", "eu."), parameters=parameters)
    assert text_of(events) == "look said: waves"
    [message] = [message for message in body["messages"] if message["role"] == "assistant"]
    assert message["content"][0] == {"reasoningContent": {"reasoningText": expected}}
    assert [list(block) for block in message["content"]] == [["reasoningContent"], ["text"], ["toolUse"]]
    _, swapped = await ask(after, model=NOVA)
    assert "reasoningContent" not in str(swapped)


async def test_redacted_reasoning_is_sent_back_as_bytes() -> None:
    """It is kept as base64."""
    block = ReasoningBlock(vendor="aws.bedrock", model=CLAUDE_4_5, data={"redactedContent": "AAEC"})
    call = ToolCall(id="call_1", name="look")
    messages = (
        Message(id="msg_1", role="user", content="Look."),
        Message(id="msg_2", role="assistant", content="", tool_calls=(call,), reasoning=(block,)),
        Message(id="msg_3", role="tool", content="sea", tool_call_id="call_1", name="look"),
    )
    request = ModelRequest(messages=messages, tools=(LOOK,), parameters={"reasoning_effort": "low"})
    _, body = await ask(request, model=CLAUDE_4_5)
    assert body["messages"][1]["content"][0] == {"reasoningContent": {"redactedContent": "AAEC"}}


async def test_thinking_is_off_after_calls_of_another_vendor() -> None:
    """The API refuses thinking if the answer with the calls has none."""
    request = ModelRequest(
        messages=conversation_after_calls(), tools=(LOOK, LISTEN), parameters={"reasoning_effort": "high"}
    )
    _, body = await ask(request, model=CLAUDE_4_5)
    assert "additionalModelRequestFields" not in body


@pytest.mark.parametrize(
    ("model", "places"),
    [
        (CLAUDE_4_5, {"tools", "system", "messages"}),
        (NOVA, {"system", "messages"}),
        (CLAUDE_3, set()),
        (LLAMA, set()),
        ("scripted", set()),
    ],
)
async def test_cache_points_are_where_the_model_takes_them(model: str, places: set[str]) -> None:
    """After the tools, after the system messages, and after the last two user messages."""
    messages = (
        Message(id="msg_0", role="system", content="Be brief."),
        Message(id="msg_1", role="user", content="One."),
        Message(id="msg_2", role="assistant", content="Two."),
        Message(id="msg_3", role="user", content="Three."),
        Message(id="msg_4", role="assistant", content="Four."),
        Message(id="msg_5", role="user", content="say:x"),
    )
    request = ModelRequest(messages=messages, tools=(LOOK,))
    events, body = await ask(request, model=model)
    marked = [message["content"][-1] == CACHE_POINT for message in body["messages"]]
    assert marked == [False, False, "messages" in places, False, "messages" in places]
    assert (body["system"][-1] == CACHE_POINT) == ("system" in places)
    assert (body["toolConfig"]["tools"][-1] == CACHE_POINT) == ("tools" in places)
    usage = events[-1].usage  # type: ignore[union-attr]
    assert (usage.cache_write_tokens > 0) == bool(places)
    assert usage.input_tokens == 7
    _, unmarked = await ask(request, model=model, prompt_cache=False)
    assert "cachePoint" not in str(unmarked)


async def test_nova_gets_simple_schemas_and_cache_points_after_texts() -> None:
    """It refuses other keywords at the top of a schema, and a cache point after results, images and documents."""
    parameters = {"title": "Look", "type": "object", "properties": {}, "additionalProperties": False}
    tool = ToolSchema(name="look", description="Look.", parameters=parameters)
    request = ModelRequest(messages=conversation_after_calls(), tools=(tool, LISTEN))
    _, body = await ask(request, model=NOVA)
    assert body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"] == {
        "type": "object",
        "properties": {},
    }
    marked = [message["content"][-1] == CACHE_POINT for message in body["messages"]]
    assert marked == [True, False, False]
    _, body = await ask(request, model=CLAUDE_4_5)
    assert body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"] == parameters
    assert body["messages"][-1]["content"][-1] == CACHE_POINT


async def test_the_stable_prefix_stays_the_same() -> None:
    """Another message changes nothing before it, except for the places of the marks."""
    one = build_request(said("One."), CLAUDE_4_5, BedrockSettings())
    more = (
        Message(id="msg_2", role="assistant", content="Two."),
        Message(id="msg_3", role="user", content="Three."),
    )
    two = build_request(ModelRequest(messages=(*said("One.").messages, *more)), CLAUDE_4_5, BedrockSettings())
    assert plain(two["messages"][:1]) == plain(one["messages"])


@pytest.mark.parametrize(
    ("model", "prefills"), [(CLAUDE_4_5, True), (CLAUDE_5, False), (NOVA, False), (LLAMA, False)]
)
async def test_an_interrupted_answer_is_continued(model: str, prefills: bool) -> None:
    """By a final assistant message if the model takes one, else by a message that asks for it."""
    _, body = await ask(said("say:x", partial="The harb \n"), model=model)
    last = plain(body)["messages"][-1]
    if prefills:
        assert last == {"role": "assistant", "content": [{"text": "The harb"}]}
    else:
        assert last == {"role": "user", "content": [{"text": CONTINUE}]}


async def test_models_that_take_no_mixed_messages_get_separate_ones() -> None:
    """Llama and Mistral refuse text beside calls and beside results."""
    after = Message(id="msg_9", role="user", content="say:done")
    request = ModelRequest(messages=(*conversation_after_calls(), after), tools=(LOOK, LISTEN))
    events, body = await ask(request, model=LLAMA)
    assert [(message["role"], list(message["content"][0])) for message in body["messages"]] == [
        ("user", ["text"]),
        ("assistant", ["toolUse"]),
        ("user", ["toolResult"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
    ]
    assert body["messages"][3]["content"] == [{"text": RECEIVED}]
    assert text_of(events) == "done"


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_model_that_does_not_stream_is_asked_by_converse(streaming: bool) -> None:
    """Llama 3 streams no answer if there are tools. The whole answer arrives as the same events."""
    program = 'think:Hm. ;; say:I look. ;; parallel:look {"at": "sea"} listen {}'
    model = LLAMA if streaming else "scripted"
    async with ScriptedProvider().serving() as provider:
        adapter = BedrockAdapter(
            BedrockSettings(
                endpoint_url=provider.address, region="us-east-1", model=model, streaming=streaming
            )
        )
        whole = [event async for event in adapter.stream(said(program, tools=(LOOK, LISTEN)))]
        other = BedrockAdapter(
            BedrockSettings(endpoint_url=provider.address, region="us-east-1", model=NOVA, prompt_cache=False)
        )
        streamed = [event async for event in other.stream(said(program, tools=(LOOK, LISTEN)))]
        await adapter.aclose()
        await other.aclose()
        paths = [request.path.rpartition("/")[2] for request in provider.answer_requests]
    assert paths == ["converse", "converse-stream"]
    assert [type(event) for event in whole] == [
        kind for kind, before in zip(map(type, streamed), [None, *map(type, streamed)], strict=False)
        if not (kind is before and kind is Text)
    ]  # fmt: skip
    assert text_of(whole) == text_of(streamed) == "I look."


async def test_block_conversation_and_turn_are_not_sent() -> None:
    """What the call is for is nobody's business outside."""
    request = said("say:x", block="diary", conversation="conv_secret", turn="turn_secret")
    _, body = await ask(request, model="scripted")
    assert not {"diary", "conv_secret", "turn_secret"} & set(str(body).split("'"))


async def test_ids_that_the_conversation_has_already_are_replaced() -> None:
    """A turn's calls must differ, or one's result would stand for another."""
    taken = ToolCall(id="tooluse_3_0", name="look")
    messages = (
        Message(id="msg_1", role="user", content='call:look {} ;; call:look {"at": "sea"}'),
        Message(id="msg_2", role="assistant", content="", tool_calls=(taken,)),
        Message(id="msg_3", role="tool", content="waves", tool_call_id=taken.id, name="look"),
    )
    events, _ = await ask(ModelRequest(messages=messages, tools=(LOOK,)), model="scripted")
    [call] = [event.call for event in events if hasattr(event, "call")]
    assert call.id.startswith("call_")


async def test_a_request_without_a_model_is_refused_with_the_cure() -> None:
    """There is no default: what an account may use depends on its region."""
    with pytest.raises(ModelError, match=r"\[adapters\.bedrock\]") as caught:
        await ask(said("say:x"))
    assert caught.value.fault == "refused"
