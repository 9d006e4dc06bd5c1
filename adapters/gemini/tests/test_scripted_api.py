"""The scripted Gemini API: the official SDK reads what it sends, and it refuses what the vendor refuses."""

import base64
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from google import genai
from google.genai import errors, types

from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.vendor_apis.gemini_content import sign
from trunkline.testing.vendor_apis.gemini_rules import find_violations
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest

LOOK = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="look",
            parameters_json_schema={"type": "object", "properties": {"at": {"type": "string"}}},
        )
    ]
)
OPTIONS = types.GenerateContentConfig(
    tools=[LOOK], automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
)


def client(provider: ScriptedProvider) -> genai.Client:
    options = types.HttpOptions(base_url=provider.address, api_version="v1beta")
    return genai.Client(vertexai=False, api_key="a-key", http_options=options)


def test_the_sdk_streams_thoughts_and_calls_and_sends_results() -> None:
    """A conversation of the SDK's own chat sends back the signatures; the scripted rules accept it."""
    program = (
        'think:Boats rest. ;; say:I look. ;; parallel:look {"at": "sea"} look {"at": "sky"}'
        " ;; think:Yes. ;; quote"
    )
    with ScriptedProvider() as provider, client(provider) as sdk:
        chat = sdk.chats.create(model="gemini-3.8-flash", config=OPTIONS)
        chunks = list(chat.send_message_stream(program))
        parts = [part for chunk in chunks for part in (chunk.parts or [])]
        calls = [part for part in parts if part.function_call]
        assert "".join(part.text or "" for part in parts if part.thought) == "Boats rest."
        assert [call.function_call.args for call in calls if call.function_call] == [
            {"at": "sea"},
            {"at": "sky"},
        ]
        assert [bool(call.thought_signature) for call in calls] == [True, False]
        assert all(call.function_call and call.function_call.id for call in calls)
        results = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=call.function_call.id, name="look", response={"output": "calm"}
                )
            )
            for call in calls
            if call.function_call
        ]
        last = list(chat.send_message_stream(results))
        assert "".join(chunk.text or "" for chunk in last) == "look said: calm\nlook said: calm"
        usage = last[-1].usage_metadata
        assert usage is not None
        assert (usage.thoughts_token_count, usage.candidates_token_count) == (1, 6)
        assert len(provider.answer_requests) == 2
        for chunk in (*chunks, *last):
            types.GenerateContentResponse.model_validate(chunk.model_dump(exclude_none=True))


def test_the_sdk_reads_whole_answers_models_counts_and_vectors() -> None:
    """The other methods have the SDK's types too."""
    with ScriptedProvider(models=("gemini-3.8-flash",)) as provider, client(provider) as sdk:
        whole = sdk.models.generate_content(
            model="gemini-3.8-flash", contents="think:Yes. ;; say:Calm. ;; call:look {}", config=OPTIONS
        )
        assert whole.text == "Calm."
        assert [call.name for call in whole.function_calls or []] == ["look"]
        [model, embedder] = list(sdk.models.list())
        assert (model.name, model.input_token_limit, model.thinking) == (
            "models/gemini-3.8-flash",
            1_048_576,
            True,
        )
        assert embedder.supported_actions == ["embedContent", "countTextTokens", "countTokens"]
        counted = sdk.models.count_tokens(model="gemini-3.8-flash", contents="one two")
        assert counted.total_tokens == 2
        found = sdk.models.embed_content(model="gemini-embedding-001", contents=["a", "b"])
        assert [len(one.values or []) for one in found.embeddings or []] == [8, 8]


@pytest.mark.parametrize(
    ("program", "code", "status"),
    [
        ("overflow", 400, "INVALID_ARGUMENT"),
        ("status:429", 429, "RESOURCE_EXHAUSTED"),
        ("status:503", 503, "UNAVAILABLE"),
    ],
)
def test_the_sdk_reads_errors(program: str, code: int, status: str) -> None:
    """In the vendor's shape, with the delay of a rate limit."""
    with (
        ScriptedProvider() as provider,
        client(provider) as sdk,
        pytest.raises(errors.APIError) as caught,
    ):
        sdk.models.generate_content(model="gemini-3.8-flash", contents=program)
    assert (caught.value.code, caught.value.status) == (code, status)
    if code == 429:
        assert caught.value.details["error"]["details"][0]["retryDelay"] == "7s"


def test_a_violation_is_answered_in_the_vendors_shape() -> None:
    """With status 400, and the provider ends with an error."""
    with pytest.raises(AssertionError, match="begin with a user role"), ScriptedProvider() as provider:
        with client(provider) as sdk, pytest.raises(errors.ClientError) as caught:
            said = [types.Content(role=role, parts=[types.Part(text="x")]) for role in ("model", "user")]
            sdk.models.generate_content(model="gemini-3.8-flash", contents=said)
        assert caught.value.status == "INVALID_ARGUMENT"


def text(said: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "parts": [{"text": said}]}


def asked(*names: str, signature: str | None = "skip_thought_signature_validator") -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"functionCall": {"name": name, "args": {}}} for name in names]
    if signature:
        parts[0]["thoughtSignature"] = signature
    return {"role": "model", "parts": parts}


def answered(*names: str) -> dict[str, Any]:
    return {
        "role": "user",
        "parts": [{"functionResponse": {"name": name, "response": {"output": "x"}}} for name in names],
    }


def violations(model: str = "gemini-3.8-flash", **body: Any) -> list[str]:
    request = RecordedRequest(
        method="POST",
        path=f"/v1beta/models/{model}:streamGenerateContent",
        headers={"x-goog-api-key": "k"},
        body={"contents": [text("x")], **body},
        query="alt=sse",
    )
    return list(map(str, find_violations(request)))


def test_a_proper_request_violates_no_rule() -> None:
    """With calls, results and signatures."""
    calls = [text("x"), asked("look", "listen"), answered("look", "listen"), asked("look"), answered("look")]
    assert violations(contents=calls) == []
    signed = asked("look", signature=sign("call", "look", {}))
    assert violations(contents=[text("x"), signed, answered("look")]) == []


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        ([], "contents is not specified"),
        ([text("x", "model"), text("x")], "begin with a user role"),
        ([text("x"), text("x", "model")], "must have the user role"),
        ([text("x", "assistant")], "valid role"),
        ([{"role": "user", "parts": []}], "parts must not be empty"),
        ([text("")], "text: must not be empty"),
        ([{"role": "user", "parts": [{"thought": True}]}], "oneof field"),
        ([text("x"), asked("look"), text("x")], "number of function response parts"),
        ([text("x"), asked("look", "look"), answered("look")], "number of function response parts"),
        ([text("x"), answered("look")], "number of function response parts"),
        ([text("x"), asked("look"), answered("listen")], "answers a call of look"),
        ([text("x"), asked("1st"), answered("1st")], "Name and args of a function call are invalid"),
        ([text("x"), asked("look", signature=None), answered("look")], "missing a thought_signature"),
        ([text("x"), asked("look", signature="c2ln"), answered("look")], "Corrupted thought signature"),
        (
            [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/gif", "data": "Z2lm"}}]}],
            "Unsupported MIME type",
        ),
        ([{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "!"}}]}], "Base64"),
    ],
)
def test_contents_that_the_vendor_refuses_are_found(contents: list[Any], told: str) -> None:
    """Each rule has a violation."""
    assert told in " ".join(violations(contents=contents))


def test_only_newer_models_check_signatures_of_the_running_turn() -> None:
    """Calls before the user's last words, and those of older models, need none."""
    unsigned = [text("x"), asked("look", signature=None), answered("look")]
    assert violations(contents=[*unsigned, text("y")]) == []
    assert violations("gemini-2.5-pro", contents=unsigned) == []


def declared(*names: str, **more: Any) -> list[Any]:
    return [{"functionDeclarations": [{"name": name, **more} for name in names]}]


def calling(mode: str, *names: str) -> dict[str, Any]:
    return {"functionCallingConfig": {"mode": mode, **({"allowedFunctionNames": names} if names else {})}}


def config(**fields: Any) -> dict[str, Any]:
    return {"generationConfig": fields}


def level(name: str) -> dict[str, Any]:
    return config(thinkingConfig={"thinkingLevel": name})


def budget(tokens: int, **more: Any) -> dict[str, Any]:
    return config(thinkingConfig={"thinkingBudget": tokens, **more})


@pytest.mark.parametrize(
    ("model", "body", "told"),
    [
        ("gemini-3.8-flash", {"messages": []}, "Unknown name 'messages'"),
        ("gemini-3.8-flash", config(max_tokens=1), "Unknown name 'max_tokens'"),
        ("gemini-3.8-flash", {"systemInstruction": {"parts": []}}, "systemInstruction.parts"),
        ("gemini-3.8-flash", {"tools": declared("look", "look")}, "Duplicate function declaration"),
        ("gemini-3.8-flash", {"tools": declared("look at")}, "Invalid function name"),
        (
            "gemini-3.8-flash",
            {"tools": declared("look", parametersJsonSchema={"type": "string"})},
            "an object",
        ),
        ("gemini-3.8-flash", {"toolConfig": calling("ANY")}, "without function_declarations"),
        (
            "gemini-3.8-flash",
            {"tools": declared("look"), "toolConfig": calling("AUTO", "look")},
            "only be set",
        ),
        (
            "gemini-3.8-flash",
            {"tools": declared("look"), "toolConfig": calling("ANY", "x")},
            "not a declared",
        ),
        ("gemini-3.8-flash", config(responseJsonSchema={}), "must be application/json"),
        ("gemini-3.8-flash", config(frequencyPenalty=1), "not supported by this model"),
        ("gemini-3.8-flash", level("minimal"), "Thinking level minimal is not supported"),
        ("gemini-2.5-pro", level("low"), "Thinking level low is not supported"),
        ("gemini-2.5-pro", budget(0), "128 to 32768"),
        ("gemini-2.5-flash", budget(0, includeThoughts=True), "only enabled when thinking is enabled"),
        ("gemini-3.8-flash", budget(9, thinkingLevel="low"), "only set one of"),
        ("gemini-2.0-flash", budget(9), "not enabled for this model"),
        (
            "gemini-2.5-flash",
            {"tools": declared("look"), **config(responseMimeType="application/json")},
            "response mime type",
        ),
    ],
)
def test_fields_that_the_vendor_refuses_are_found(model: str, body: dict[str, Any], told: str) -> None:
    """Each rule has a violation."""
    assert told in " ".join(violations(model, **body))


@pytest.mark.parametrize("change", [lambda r: r.headers.clear(), lambda r: setattr(r, "query", "")])
def test_the_key_and_the_form_of_the_stream_are_required(change: Callable[[RecordedRequest], None]) -> None:
    """The key in its header, and alt=sse for events."""
    request = RecordedRequest(
        method="POST",
        path="/v1beta/models/gemini-3.8-flash:streamGenerateContent",
        headers={"x-goog-api-key": "k"},
        body={"contents": [text("x")]},
        query="alt=sse",
    )
    assert find_violations(request) == ()
    change(request)
    assert len(find_violations(request)) == 1


def test_signatures_belong_to_their_content() -> None:
    """Another call or text has another signature, and it is valid Base64."""
    assert sign("call", "look", {}) != sign("call", "look", {"at": "sea"})
    assert base64.b64decode(sign("text", "x", "x"), validate=True)
    assert msgspec.json.encode(sign("text", "x", "x"))
