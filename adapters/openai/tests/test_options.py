"""Tool choice, forms of answers, parameters, hosted tools and documents: what exactly is sent."""

from typing import Any

import msgspec
import pytest

from trunkline import ConfigError, Image, Message
from trunkline.api.model import CallIds, DocumentFile, ModelRequest, ResponseFormat, Text, ToolChoice, ToolRan
from trunkline.testing.adapter_suite import request_for
from trunkline.testing.script import RanTools, ScriptedCall, answer
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.chat_completions import ChatCompletions
from trunkline_openai.hosted_tools import CALL_TYPES, tool_ran
from trunkline_openai.responses import Responses
from trunkline_openai.settings import VENDOR_SETTINGS, OpenAISettings

CHAT, RESPONSES = OpenAISettings(api="chat"), OpenAISettings()
SCHEMA = {
    "type": "object",
    "properties": {"calm": {"type": "boolean"}},
    "required": ["calm"],
    "additionalProperties": False,
}


def body_of(settings: OpenAISettings, model: str = "gpt-5", **more: Any) -> dict[str, Any]:
    """The body of a request with two tools, look and listen."""
    request = msgspec.structs.replace(request_for("say:x"), model=model, **more)
    protocol = ChatCompletions if settings.protocol == "chat" else Responses
    return protocol.body(request, model, settings)


def names(body: dict[str, Any]) -> list[str]:
    return [tool.get("name") or tool["function"]["name"] for tool in body.get("tools", [])]


def chat_tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def item_tool(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name}


BOTH = ("look", "listen")


@pytest.mark.parametrize(
    ("choice", "chat", "responses"),
    [
        (ToolChoice(), None, None),
        (ToolChoice(mode="none"), "none", "none"),
        (ToolChoice(mode="required"), "required", "required"),
        (ToolChoice(mode="required", tools=("look",)), chat_tool("look"), item_tool("look")),
        (
            ToolChoice(mode="required", tools=BOTH),
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": list(map(chat_tool, BOTH))},
            },
            {"type": "allowed_tools", "mode": "required", "tools": list(map(item_tool, BOTH))},
        ),
        (
            ToolChoice(tools=("look",)),
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [chat_tool("look")]}},
            {"type": "allowed_tools", "mode": "auto", "tools": [item_tool("look")]},
        ),
        (ToolChoice(mode="none", tools=("look",)), "none", "none"),
    ],
)
def test_tool_choice_has_openais_forms(choice: ToolChoice, chat: Any, responses: Any) -> None:
    """All tools stay in the request, so that the prompt cache keeps them."""
    for settings, expected in ((CHAT, chat), (RESPONSES, responses)):
        body = body_of(settings, tool_choice=choice)
        assert body.get("tool_choice") == expected
        assert names(body) == ["look", "listen"]


@pytest.mark.parametrize(
    ("choice", "sent", "offered"),
    [
        (ToolChoice(), None, ["look", "listen"]),
        (ToolChoice(mode="none"), "none", ["look", "listen"]),
        (ToolChoice(mode="required"), "required", ["look", "listen"]),
        (ToolChoice(mode="required", tools=("look",)), "required", ["look"]),
        (ToolChoice(tools=("listen",)), None, ["listen"]),
    ],
)
def test_other_servers_get_only_the_permitted_tools(
    choice: ToolChoice, sent: Any, offered: list[str]
) -> None:
    """They know the words, and not all of them know the objects."""
    body = body_of(VENDOR_SETTINGS["groq"](), tool_choice=choice)
    assert (body.get("tool_choice"), names(body)) == (sent, offered)


def test_a_server_without_tool_choice_gets_no_tools_for_none() -> None:
    """Ollama ignores tool_choice."""
    settings = VENDOR_SETTINGS["ollama-v1"]()
    assert "tools" not in body_of(settings, tool_choice=ToolChoice(mode="none"))
    body = body_of(settings, tool_choice=ToolChoice(mode="required", tools=("look",)))
    assert ("tool_choice" in body, names(body)) == (False, ["look"])


def test_a_json_schema_is_sent_in_the_form_of_each_protocol() -> None:
    """With its name, description and strictness."""
    wanted = ResponseFormat(name="weather", description="The harbour.", schema=SCHEMA)
    given = {"name": "weather", "description": "The harbour.", "schema": SCHEMA, "strict": True}
    assert body_of(CHAT, response_format=wanted)["response_format"] == {
        "type": "json_schema",
        "json_schema": given,
    }
    assert body_of(RESPONSES, response_format=wanted)["text"] == {"format": {"type": "json_schema", **given}}
    anything = ResponseFormat()
    assert body_of(CHAT, response_format=anything)["response_format"] == {"type": "json_object"}
    assert body_of(RESPONSES, response_format=anything)["text"] == {"format": {"type": "json_object"}}
    local = body_of(VENDOR_SETTINGS["lmstudio"](), response_format=anything)["response_format"]
    assert local["json_schema"] == {"name": "answer", "schema": {"type": "object"}, "strict": False}


@pytest.mark.parametrize(
    ("settings", "structured", "reads"),
    [
        (OpenAISettings(), True, True),
        (OpenAISettings(base_url="https://eu.api.openai.com/v1"), True, True),
        (OpenAISettings(base_url="http://127.0.0.1:1/v1"), False, False),
        (OpenAISettings(base_url="http://127.0.0.1:1/v1", structured=True, reads=True), True, True),
        (OpenAISettings(base_url="https://api.groq.com/openai/v1"), False, False),
        (VENDOR_SETTINGS["mistral"](), True, False),
        (VENDOR_SETTINGS["mistral"](structured=False), False, False),
        (VENDOR_SETTINGS["deepseek"](), False, False),
        (VENDOR_SETTINGS["openrouter"](reads=True), False, True),
    ],
)
def test_abilities_are_the_vendors_unless_set(
    settings: OpenAISettings, structured: bool, reads: bool
) -> None:
    """A setting overrides what is known of the vendor."""
    adapter = OpenAIAdapter(settings)
    assert (adapter.structured, adapter.reads) == (structured, reads)


@pytest.mark.parametrize(
    ("settings", "model", "text", "wanted", "enforced"),
    [
        (RESPONSES, "gpt-5", "x", ResponseFormat(schema=SCHEMA), True),
        (RESPONSES, "", "x", ResponseFormat(schema=SCHEMA), True),
        (RESPONSES, "gpt-4-turbo", "x", ResponseFormat(schema=SCHEMA), False),
        (RESPONSES, "gpt-4o", "x", ResponseFormat(schema=SCHEMA), True),
        (RESPONSES, "gpt-5", "x", ResponseFormat(), False),
        (RESPONSES, "gpt-5", "Answer in JSON.", ResponseFormat(), True),
        (VENDOR_SETTINGS["groq"](), "m", "x", ResponseFormat(schema=SCHEMA), False),
    ],
)
def test_a_format_is_sent_where_it_is_enforced(
    settings: OpenAISettings, model: str, text: str, wanted: ResponseFormat, enforced: bool
) -> None:
    """Elsewhere Trunkline instructs, validates and repairs."""
    request = msgspec.structs.replace(request_for(text), model=model, response_format=wanted)
    assert OpenAIAdapter(settings).enforces_format(request) is enforced


@pytest.mark.anyio
@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_choices_and_forms_are_accepted(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted API checks them by OpenAI's rules."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    with ScriptedProvider() as provider:
        monkeypatch.setattr(OpenAISettings, "url", property(lambda self: provider.url))
        adapter = OpenAIAdapter(OpenAISettings(api=api))
        for choice in (ToolChoice(mode="required", tools=BOTH), ToolChoice(mode="required", tools=("look",))):
            request = msgspec.structs.replace(
                request_for("say:x"),
                model="gpt-5",
                temperature=0.5,
                max_tokens=9,
                tool_choice=choice,
                response_format=ResponseFormat(schema=SCHEMA),
                parameters={"reasoning_effort": "low", "verbosity": "low"},
            )
            events = [event async for event in adapter.stream(request)]
            assert any(isinstance(event, Text) for event in events)
        await adapter.aclose()


def test_parameters_become_the_fields_of_each_protocol() -> None:
    """Those of the section, overridden by the request's."""
    settings = OpenAISettings(parameters={"reasoning_effort": "low", "verbosity": "high"})
    wanted = ResponseFormat(schema=SCHEMA)
    body = body_of(settings, parameters={"reasoning_effort": "high", "reasoning_summary": "auto"})
    assert (body["reasoning"], body["text"]) == ({"effort": "high", "summary": "auto"}, {"verbosity": "high"})
    assert set(body_of(settings, response_format=wanted)["text"]) == {"verbosity", "format"}
    chat = body_of(
        OpenAISettings(api="chat", parameters={"reasoning_effort": "low", "seed": 7}, model="gpt-5.2")
    )
    assert (chat["reasoning_effort"], chat["seed"]) == ("low", 7)


@pytest.mark.parametrize(
    ("vendor", "effort", "fields"),
    [
        ("groq", "low", {"reasoning_effort": "low"}),
        ("openrouter", "high", {"reasoning": {"effort": "high"}}),
        ("deepseek", "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("deepseek", "none", {"thinking": {"type": "disabled"}}),
    ],
)
def test_reasoning_effort_has_each_vendors_form(vendor: str, effort: str, fields: dict[str, Any]) -> None:
    """One parameter for all of them."""
    body = body_of(VENDOR_SETTINGS[vendor](parameters={"reasoning_effort": effort}), model="m")
    shown = {
        key: value for key, value in body.items() if key in ("reasoning", "reasoning_effort", "thinking")
    }
    assert shown == fields


def test_mistral_has_names_and_ids_of_its_own() -> None:
    """The seed has another name, and the ids of calls have nine letters and digits."""
    from trunkline.testing.adapter_suite import conversation_after_calls

    settings = VENDOR_SETTINGS["mistral"](parameters={"seed": 7})
    body = ChatCompletions.body(ModelRequest(messages=conversation_after_calls()), "m", settings)
    ids = [call["id"] for call in body["messages"][1]["tool_calls"]]
    assert body["random_seed"] == 7
    assert [len(id) for id in ids] == [9, 9]
    assert [message["tool_call_id"] for message in body["messages"][2:]] == ids


def test_local_templates_get_alternating_roles() -> None:
    """Several system messages are one, and so are messages of the person that follow each other."""
    given = [("system", "Be brief."), ("system", "Be kind."), ("user", "Context."), ("user", "Hello?")]
    messages = tuple(
        Message(id=f"msg_{number}", role=role, content=text)  # type: ignore[arg-type]
        for number, (role, text) in enumerate(given)
    )
    body = ChatCompletions.body(ModelRequest(messages=messages), "m", VENDOR_SETTINGS["llamacpp"]())
    assert body["messages"] == [
        {"role": "system", "content": "Be brief.\n\nBe kind."},
        {"role": "user", "content": "Context.\n\nHello?"},
    ]


@pytest.mark.parametrize(
    ("model", "parameters", "sent"),
    [
        ("gpt-4.1", {}, True),
        ("gpt-5", {}, False),
        ("o3", {}, False),
        ("gpt-5-chat-latest", {}, True),
        ("gpt-5.2", {}, False),
        ("gpt-5.2", {"reasoning_effort": "none"}, True),
    ],
)
def test_a_temperature_is_sent_to_models_that_take_one(
    model: str, parameters: dict[str, Any], sent: bool
) -> None:
    """OpenAI's reasoning models refuse it while they reason."""
    for settings in (CHAT, RESPONSES):
        body = body_of(settings, model=model, temperature=0.5, parameters=parameters)
        assert ("temperature" in body) is sent


@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        (
            OpenAISettings,
            {"parameters": {"effort": "low"}},
            "adapters.openai.parameters has no parameter 'effort'",
        ),
        (OpenAISettings, {"parameters": {"reasoning_effort": "much"}}, "must be one of none, minimal"),
        (OpenAISettings, {"parameters": {"top_p": 0.5}, "model": "gpt-5"}, "has no parameter 'top_p'"),
        (OpenAISettings, {"parameters": {"seed": 1}, "model": "gpt-4.1"}, "has no parameter 'seed'"),
        (OpenAISettings, {"parameters": {"top_p": 2}, "model": "gpt-4.1"}, "must be at most 1"),
        (
            VENDOR_SETTINGS["cerebras"],
            {"parameters": {"presence_penalty": 1}},
            "adapters.cerebras.parameters",
        ),
        (OpenAISettings, {"embedding_dimensions": 0}, "embedding_dimensions"),
        (OpenAISettings, {"hosted_tools": ({"type": "web_search"},), "api": "chat"}, "no hosted tools"),
        (OpenAISettings, {"hosted_tools": ({"name": "web_search"},)}, "without the type"),
        (VENDOR_SETTINGS["groq"], {"base_url": "groq"}, "adapters.groq.base_url"),
    ],
)
def test_wrong_settings_are_refused_with_a_cure(kind: Any, fields: dict[str, Any], problem: str) -> None:
    """When they are read, before any request."""
    with pytest.raises(ConfigError, match=problem.replace("'", ".")) as caught:
        kind(**fields)
    assert caught.value.hint


def test_known_parameters_are_accepted() -> None:
    """By model and protocol; any server of one's own takes those of samplers."""
    assert OpenAISettings(api="chat", model="gpt-4.1", parameters={"seed": 7, "stop": ["."]})
    assert OpenAISettings(model="gpt-5", parameters={"reasoning_effort": "high", "service_tier": "flex"})
    assert OpenAISettings(base_url="http://x/v1", parameters={"top_k": 40, "min_p": 0.1})


@pytest.mark.anyio
async def test_hosted_tools_are_offered_and_shown() -> None:
    """In requests of turns, with what makes their outputs arrive. A call arrives as one that ran."""
    tool = {"type": "web_search", "search_context_size": "low"}

    def script(heard: Any) -> Any:
        return answer(RanTools(ScriptedCall("web_search", {"query": "sea"}), "https://sea.example/"))

    with ScriptedProvider(script) as provider:
        settings = OpenAISettings(base_url=provider.url, api="responses", hosted_tools=(tool,))
        adapter = OpenAIAdapter(settings)
        request = msgspec.structs.replace(request_for("x"), model="gpt-4.1")
        events = [event async for event in adapter.stream(request)]
        other = msgspec.structs.replace(request, purpose="routing")
        assert [event async for event in adapter.stream(other)]
        await adapter.aclose()
    first, second = (one.body for one in provider.answer_requests)
    assert first["tools"][-1] == tool
    assert first["include"] == ["web_search_call.action.sources"]
    assert tool not in second["tools"]
    [ran] = [event for event in events if isinstance(event, ToolRan)]
    assert (ran.call.name, ran.output) == ("web_search", "https://sea.example/")


@pytest.mark.parametrize("value", [None, 7, "text", [7, None], {"a": 1}, [{"url": None}]])
@pytest.mark.parametrize("kind", CALL_TYPES)
def test_an_odd_item_of_a_hosted_tool_is_shown_too(kind: str, value: Any) -> None:
    """Whatever its fields hold: the tool ran, and the answer must not end for it."""
    fields = (
        "id",
        "action",
        "results",
        "outputs",
        "queries",
        "code",
        "arguments",
        "result",
        "name",
        "output",
    )
    ran = tool_ran({"type": kind, **dict.fromkeys(fields, value)}, CallIds(request_for("x")))
    assert ran.call.id
    assert ran.call.name


@pytest.mark.anyio
@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_documents_are_sent_as_file_data(api: Any) -> None:
    """Behind text and images, with their names; a message without text has no empty part."""
    document = DocumentFile(media_type="application/pdf", name="log.pdf", data=b"%PDF")
    image = Image(media_type="image/png", data=b"\x89PNG")
    text = Message(id="msg_1", role="user", content="say:read", documents=(document,), images=(image,))
    bare = Message(id="msg_2", role="user", content="", documents=(document,))
    with ScriptedProvider(["say:read"]) as provider:
        adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url, api=api, model="m", reads=True))
        assert [event async for event in adapter.stream(ModelRequest(messages=(text, bare)))]
        await adapter.aclose()
    body = provider.answer_requests[0].body
    with_text, without = (message["content"] for message in body.get("messages") or body["input"])
    address = "data:application/pdf;base64,JVBERg=="
    file = {
        "chat": {"type": "file", "file": {"filename": "log.pdf", "file_data": address}},
        "responses": {"type": "input_file", "filename": "log.pdf", "file_data": address},
    }[api]
    assert [part["type"] for part in with_text[:2]] == {
        "chat": ["text", "image_url"],
        "responses": ["input_text", "input_image"],
    }[api]
    assert (with_text[2], without) == (file, [file])
