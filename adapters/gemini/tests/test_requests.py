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
    ResponseFormat,
    Text,
    ToolChoice,
)
from trunkline.api.tool import ToolSchema
from trunkline.testing.adapter_suite import conversation_after_calls
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest
from trunkline_gemini.adapter import GeminiAdapter
from trunkline_gemini.content_request import CONTINUE, build_request
from trunkline_gemini.contents import OPENING, SKIP_SIGNATURE
from trunkline_gemini.settings import GeminiSettings

pytestmark = pytest.mark.anyio

LOOK = ToolSchema(
    name="look",
    description="Look around.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}},
)
LISTEN = ToolSchema(name="listen", description="Listen.")
SCHEMA = {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def user(text: str, **more: Any) -> Message:
    return Message(id=f"msg_{text[:8]}", role="user", content=text, **more)


def said(*texts: str, **more: Any) -> ModelRequest:
    return ModelRequest(messages=tuple(map(user, texts)), **more)


def body(request: ModelRequest, model: str = "gemini-3.8-flash", **settings: Any) -> dict[str, Any]:
    return build_request(request, model, GeminiSettings(**settings))


def thinking(effort: str, model: str, **parameters: Any) -> Any:
    request = said("x", parameters={"reasoning_effort": effort, **parameters})
    return body(request, model).get("generationConfig", {}).get("thinkingConfig")


async def ask(request: ModelRequest, **settings: Any) -> tuple[list[ModelEvent], RecordedRequest]:
    """The events of the answer, and the request that the server received."""
    async with ScriptedProvider().serving() as provider:
        adapter = GeminiAdapter(GeminiSettings(base_url=provider.address, **settings))
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


async def test_all_results_of_an_answer_are_one_content_directly_after_it() -> None:
    """Names and ids are those of the calls; what the person says after them is a content of its own."""
    messages = (*conversation_after_calls(), user("roles"))
    _, request = await ask(ModelRequest(messages=messages))
    contents = request.body["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "user"]
    assert contents[1]["parts"][0] == {"text": "The harbour is calm tonight."}
    assert [part["functionCall"] for part in contents[1]["parts"][1:]] == [
        {"id": "call_look", "name": "look", "args": {"at": "sea"}},
        {"id": "call_listen", "name": "listen", "args": {"to": "wind"}},
    ]
    assert [part["functionResponse"] for part in contents[2]["parts"]] == [
        {"id": "call_look", "name": "look", "response": {"output": "waves"}},
        {"id": "call_listen", "name": "listen", "response": {"output": "a breeze"}},
    ]
    assert contents[3]["parts"] == [{"text": "roles"}]


async def test_a_failed_result_is_an_error() -> None:
    """The API distinguishes output and error; an error without text has a text."""
    call = ToolCall(id="call_1", name="look")
    for content, told in (("No sea.", "No sea."), ("", "The tool failed without a message.")):
        failed = Message(id="msg_3", role="tool", content=content, tool_call_id="call_1", error=True)
        asked = Message(id="msg_2", role="assistant", content="", tool_calls=(call,))
        _, request = await ask(ModelRequest(messages=(user("quote"), asked, failed)))
        [part] = request.body["contents"][2]["parts"]
        assert part["functionResponse"]["response"] == {"error": told}


async def test_system_messages_at_the_beginning_are_the_system_instruction() -> None:
    """Each is a part. One in mid-conversation stays at its place, as marked text of the user."""
    messages = (
        Message(id="msg_1", role="system", content="Be brief."),
        Message(id="msg_2", role="system", content="Be kind."),
        user("say:x"),
        Message(id="msg_3", role="assistant", content="x"),
        Message(id="msg_4", role="system", content="The port is closed."),
        user("roles"),
    )
    events, request = await ask(ModelRequest(messages=messages))
    assert request.body["systemInstruction"] == {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}
    assert request.body["contents"][2]["parts"] == [{"text": "<system>\nThe port is closed.\n</system>"}]
    assert text_of(events) == "system system user assistant user user"


async def test_messages_of_one_role_in_a_row_are_one_content() -> None:
    """Context that precedes the person's words remains a part of its own, and messages without text are left out."""
    silent = Message(id="msg_0", role="assistant", content=" ")
    messages = (user("Context."), user(""), silent, user("say:x"))
    _, request = await ask(ModelRequest(messages=messages))
    assert request.body["contents"] == [
        {"role": "user", "parts": [{"text": "Context."}, {"text": "say:x"}]},
    ]


async def test_a_conversation_that_begins_with_the_model_gets_an_opening() -> None:
    """The API requires the user first."""
    _, request = await ask(
        ModelRequest(messages=(Message(id="msg_1", role="assistant", content="Ahoy."), user("say:x")))
    )
    assert request.body["contents"][0] == {"role": "user", "parts": [{"text": OPENING}]}


async def test_an_interrupted_answer_is_continued_by_a_message_of_the_user() -> None:
    """Newer models refuse a request that ends with a model's content."""
    _, request = await ask(said("say:x", partial="The harbour is "))
    assert request.body["contents"][1:] == [
        {"role": "model", "parts": [{"text": "The harbour is "}]},
        {"role": "user", "parts": [{"text": CONTINUE}]},
    ]


async def test_images_and_documents_precede_the_text() -> None:
    """They are sent inline; documents of text as plain text."""
    files = user(
        "say:x",
        images=(Image(media_type="image/png", data=b"png"),),
        documents=(
            DocumentFile(media_type="application/pdf", name="a.pdf", data=b"%PDF"),
            DocumentFile(media_type="text/markdown; charset=utf-8", name="a.md", data=b"# A"),
            DocumentFile(media_type="application/json", name="a.json", data=b"{}"),
        ),
    )
    _, request = await ask(ModelRequest(messages=(files,)))
    blobs = [part["inlineData"] for part in request.body["contents"][0]["parts"][:-1]]
    assert [(blob["mimeType"], base64.b64decode(blob["data"])) for blob in blobs] == [
        ("application/pdf", b"%PDF"),
        ("text/plain", b"# A"),
        ("text/plain", b"{}"),
        ("image/png", b"png"),
    ]


@pytest.mark.parametrize(
    "message",
    [
        user("x", images=(Image(media_type="image/gif", data=b"gif"),)),
        user("x", documents=(DocumentFile(media_type="application/zip", name="a.zip", data=b"PK"),)),
    ],
)
def test_files_that_the_vendor_does_not_read_are_refused(message: Message) -> None:
    """Before anything is sent, with the type."""
    with pytest.raises(ModelError, match=r"image/gif|application/zip") as caught:
        body(ModelRequest(messages=(message,)))
    assert caught.value.fault == "refused"


# Tools -------------------------------------------------------------------------------------------------------


async def test_tools_are_function_declarations_with_json_schemas() -> None:
    """A tool without parameters has no schema."""
    _, request = await ask(said("say:x", tools=(LOOK, LISTEN)))
    assert request.body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "look", "description": "Look around.", "parametersJsonSchema": LOOK.parameters},
                {"name": "listen", "description": "Listen."},
            ]
        }
    ]
    assert "toolConfig" not in request.body


@pytest.mark.parametrize(
    ("choice", "config", "offered"),
    [
        (ToolChoice(), None, ["look", "listen"]),
        (ToolChoice(tools=("look",)), None, ["look"]),
        (ToolChoice(mode="required"), {"mode": "ANY"}, ["look", "listen"]),
        (
            ToolChoice(mode="required", tools=("look",)),
            {"mode": "ANY", "allowedFunctionNames": ["look"]},
            ["look", "listen"],
        ),
        (ToolChoice(mode="none"), {"mode": "NONE"}, ["look", "listen"]),
    ],
)
async def test_every_tool_choice_has_its_form(choice: ToolChoice, config: Any, offered: list[str]) -> None:
    """Forced calls are restricted by name; a free choice by leaving out the other tools."""
    _, request = await ask(said("say:x", tools=(LOOK, LISTEN), tool_choice=choice))
    [tool] = request.body["tools"]
    assert [one["name"] for one in tool["functionDeclarations"]] == offered
    assert request.body.get("toolConfig", {}).get("functionCallingConfig") == config


async def test_names_that_the_vendor_refuses_are_changed_and_changed_back() -> None:
    """In the declaration and in calls; the platform sees its own name again."""
    tool = ToolSchema(name="1 look/at", parameters=LOOK.parameters)
    events, request = await ask(said('call:_1_look_at {"at": "sea"}', tools=(tool,)))
    assert request.body["tools"][0]["functionDeclarations"][0]["name"] == "_1_look_at"
    assert [event.call.name for event in events if hasattr(event, "call")] == ["1 look/at"]


# Configuration -----------------------------------------------------------------------------------------------


async def test_the_configuration_has_the_vendors_names() -> None:
    """Limit, temperature and parameters; those of the request override those of the settings."""
    parameters = {
        "stop_sequences": ["."],
        "top_p": 0.9,
        "top_k": 40,
        "seed": 7,
        "media_resolution": "low",
        "include_thoughts": False,
        "service_tier": "flex",
        "safety_settings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    }
    request = said("say:x", max_tokens=9, temperature=0.5, parameters={"seed": 8})
    _, sent = await ask(request, parameters=parameters)
    assert sent.body["generationConfig"] == {
        "stopSequences": ["."],
        "topP": 0.9,
        "topK": 40,
        "seed": 8,
        "maxOutputTokens": 9,
        "temperature": 0.5,
        "mediaResolution": "MEDIA_RESOLUTION_LOW",
        "thinkingConfig": {"includeThoughts": False},
    }
    assert sent.body["serviceTier"] == "flex"
    assert sent.body["safetySettings"] == parameters["safety_settings"]


@pytest.mark.parametrize(
    ("effort", "model", "expected"),
    [
        ("none", "gemini-3.8-flash", {"thinkingLevel": "LOW"}),
        ("minimal", "gemini-3.8-flash", {"thinkingLevel": "LOW"}),
        ("medium", "gemini-4-argon", {"thinkingLevel": "MEDIUM"}),
        ("xhigh", "gemini-4-argon", {"thinkingLevel": "HIGH"}),
        ("none", "gemini-3.5-flash-lite", {"thinkingLevel": "MINIMAL"}),
        ("medium", "gemini-3-pro-preview", {"thinkingLevel": "LOW"}),
        ("low", "gemini-2.5-flash", {"thinkingBudget": 1024}),
        ("minimal", "gemini-2.5-flash-lite", {"thinkingBudget": 512}),
        ("xhigh", "gemini-2.5-flash", {"thinkingBudget": 24_576}),
        ("xhigh", "gemini-2.5-pro", {"thinkingBudget": 32_768}),
        ("none", "gemini-2.5-pro", {"thinkingBudget": 128}),
    ],
)
async def test_reasoning_effort_has_the_form_of_the_model(
    effort: str, model: str, expected: dict[str, Any]
) -> None:
    """A level or a budget; the nearest one that the model has. The scripted API accepts each."""
    assert thinking(effort, model) == {"includeThoughts": True, **expected}
    await ask(said("say:x", model=model, parameters={"reasoning_effort": effort}))


async def test_thinking_can_be_switched_off_where_the_model_allows_it() -> None:
    """A budget of 0; models without thinking receive nothing."""
    assert thinking("none", "gemini-2.5-flash") == {"thinkingBudget": 0}
    assert thinking("high", "gemini-2.0-flash") is None
    assert thinking("high", "gemini-2.5-flash", thinking_budget=-1) == {
        "includeThoughts": True,
        "thinkingBudget": -1,
    }
    for model in ("gemini-2.5-flash", "gemini-2.0-flash"):
        await ask(said("say:x", model=model, parameters={"reasoning_effort": "none"}))


async def test_a_response_format_is_enforced_by_the_vendor() -> None:
    """With the schema, and with tools for newer models only. Trunkline enforces other formats."""
    wanted = ResponseFormat(schema=SCHEMA, description="A port.")
    _, request = await ask(said("say:x", tools=(LOOK,), response_format=wanted))
    config = request.body["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"] == {**SCHEMA, "description": "A port."}
    adapter = GeminiAdapter(GeminiSettings())
    enforced = [
        adapter.enforces_format(said("x", response_format=format, tools=tools, model=model))
        for format, tools, model in (
            (wanted, (LOOK,), ""),
            (wanted, (), "gemini-2.5-flash"),
            (wanted, (LOOK,), "gemini-2.5-flash"),
            (ResponseFormat(schema=SCHEMA, strict=False), (), ""),
            (ResponseFormat(), (), ""),
        )
    ]
    assert enforced == [True, True, False, False, False]


async def test_extra_fields_are_added_to_the_body() -> None:
    """Objects are joined, so that one field of the configuration can be set."""
    extra = {"store": False, "generationConfig": {"candidateCount": 1}}
    _, request = await ask(said("say:x", max_tokens=9), extra_body=extra)
    assert request.body["store"] is False
    assert (request.body["generationConfig"]["candidateCount"]) == 1
    assert request.body["generationConfig"]["maxOutputTokens"] == 9


# Addresses and other requests -----------------------------------------------------------------------------------


async def test_a_request_names_model_version_and_key_as_the_vendor_wants() -> None:
    """The key is in its header and not in the address; nothing of the platform is sent."""
    async with ScriptedProvider().serving() as provider:
        adapter = GeminiAdapter(GeminiSettings(base_url=provider.address, model="gemini-3.8-flash"))
        async for _ in adapter.stream(said("say:x", block="main", conversation="conv_1")):
            pass
        await adapter.aclose()
        [request] = provider.answer_requests
    assert request.path == "/v1beta/models/gemini-3.8-flash:streamGenerateContent"
    assert request.query == "alt=sse"
    assert request.headers["x-goog-api-key"] == "no-key-needed"
    assert set(request.body) == {"contents", "generationConfig"}


async def test_models_are_listed_from_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """With limits and abilities; ids have no prefix."""
    monkeypatch.setattr("trunkline_gemini.adapter.PAGE", 2)
    names = ("gemini-4-argon", "gemini-3.8-flash", "gemini-3-pro-image")
    async with ScriptedProvider(models=names).serving() as provider:
        adapter = GeminiAdapter(GeminiSettings(base_url=provider.address))
        models = {model.id: model for model in await adapter.models()}
        await adapter.aclose()
        assert len(provider.requests) == 2
    assert set(models) == {*names, "gemini-embedding-001"}
    argon = models["gemini-4-argon"]
    assert (argon.context_window, argon.max_output) == (1_048_576, 65_536)
    assert argon.abilities == {"tools", "images", "documents", "structured", "reasoning"}
    assert models["gemini-3-pro-image"].abilities is None
    assert models["gemini-embedding-001"].abilities == {"embeddings"}


async def test_tokens_are_counted_for_the_whole_request() -> None:
    """System instruction and contents are counted by the vendor's call, nothing is generated."""
    async with ScriptedProvider().serving() as provider:
        adapter = GeminiAdapter(GeminiSettings(base_url=provider.address))
        system = Message(id="msg_1", role="system", content="Be brief.")
        request = ModelRequest(messages=(system, user("How is the harbour?")), tools=(LOOK,))
        assert await adapter.count_tokens(request) == 6
        await adapter.aclose()
        [sent] = provider.requests
    assert sent.path.endswith(":countTokens")
    assert sent.body["generateContentRequest"]["model"] == "models/gemini-3.8-flash"


async def test_texts_are_embedded_in_their_order() -> None:
    """In as many requests as the vendor's limit requires."""
    texts = [f"Text {number}" for number in range(101)]
    async with ScriptedProvider().serving() as provider:
        adapter = GeminiAdapter(GeminiSettings(base_url=provider.address))
        found = await adapter.embed(texts)
        vectors = found.vectors
        again = await adapter.embed(texts[100:], model="models/gemini-embedding-2", dimensions=4)
        assert (await adapter.embed(())).vectors == ()
        assert provider.requests[2].body["requests"][0]["outputDimensionality"] == 4
        await adapter.aclose()
        paths = [request.path for request in provider.requests]
        assert provider.requests[0].body["requests"][1] == {
            "model": "models/gemini-embedding-001",
            "content": {"parts": [{"text": "Text 1"}]},
        }
    assert len(vectors) == len({tuple(vector) for vector in vectors}) == 101
    assert vectors[100][:4] == again.vectors[0]
    assert (found.usage.input_tokens, found.model) == (202, "gemini-embedding-001")
    assert [path.rpartition("/")[2] for path in paths] == [
        "gemini-embedding-001:batchEmbedContents",
        "gemini-embedding-001:batchEmbedContents",
        "gemini-embedding-2:batchEmbedContents",
    ]


def test_calls_of_another_model_have_the_documented_signature() -> None:
    """Only the first call of each answer after the person's last words, and only for models that check it."""
    contents = body(ModelRequest(messages=conversation_after_calls()))["contents"]
    assert [part.get("thoughtSignature") for part in contents[1]["parts"]] == [None, SKIP_SIGNATURE, None]
    later = body(ModelRequest(messages=(*conversation_after_calls(), user("And now?"))))["contents"]
    assert not any("thoughtSignature" in part for part in later[1]["parts"])
    older = body(ModelRequest(messages=conversation_after_calls()), "gemini-2.5-pro")["contents"]
    assert not any("thoughtSignature" in part for part in older[1]["parts"])
