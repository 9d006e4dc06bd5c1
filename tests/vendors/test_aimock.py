"""The adapters against aimock: text, reasoning, calls, results, failures, vectors and audio on another implementation
of the vendors' protocols.
"""

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.vendors.aimock_server import Missing, aimock_server
from tests.vendors.frame_filter import without_empty_starts
from trunkline import Message, Secret
from trunkline.api.model import (
    Audio,
    Call,
    Finish,
    ModelAdapter,
    ModelError,
    ModelEvent,
    ModelRequest,
    SpeechAudio,
    SpeechRequest,
    Text,
    TranscriptionRequest,
)
from trunkline.api.tool import ToolSchema
from trunkline.testing.vendor_apis.bedrock_authorization import ACCESS_KEY, SECRET_KEY
from trunkline_anthropic.adapter import AnthropicAdapter
from trunkline_anthropic.settings import AnthropicSettings
from trunkline_bedrock.adapter import BedrockAdapter
from trunkline_bedrock.settings import BedrockSettings
from trunkline_gemini.adapter import GeminiAdapter
from trunkline_gemini.settings import GeminiSettings
from trunkline_ollama.adapter import OllamaAdapter
from trunkline_ollama.settings import OllamaSettings
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.settings import OpenAISettings

pytestmark = pytest.mark.anyio

KEY = "sk-canary-0123456789abcdef"
SENTENCE = "The harbour is calm tonight, and no boat moves."
WAVES = "You said there are waves."
LOOKS: list[dict[str, Any]] = [
    {"id": "call_aimock_1", "name": "look", "arguments": {"at": "sea"}},
    {"id": "call_aimock_2", "name": "look", "arguments": {"at": "sky"}},
]
FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "How is the sea"},
        "response": {"content": SENTENCE, "usage": {"prompt_tokens": 12, "completion_tokens": 9, "total_tokens": 21}},
    },
    {"match": {"userMessage": "Look twice", "hasToolResult": True}, "response": {"content": WAVES}},
    {"match": {"userMessage": "Look twice"}, "response": {"toolCalls": LOOKS}},
    {"match": {"userMessage": "Cut it"}, "response": {"content": SENTENCE}, "truncateAfterChunks": 3, "chunkSize": 5},
    *(
        {"match": {"userMessage": f"Fail {status}"}, "response": {"error": {"message": "no"}, "status": status}}
        for status in (401, 429, 500, 529)
    ),
    {"match": {"endpoint": "transcription"}, "response": {"transcription": {"text": "buy beans", "language": "en"}}},
    {
        "match": {"endpoint": "speech"},
        "response": {"audio": base64.b64encode(b"spoken beans").decode(), "format": "mp3"},
    },
]  # fmt: skip

LOOK = ToolSchema(
    name="look",
    description="Look around.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
)


def adapter_of(name: str, url: str) -> ModelAdapter:
    """Return the adapter of a name, for this server."""
    key = Secret(env="A_KEY")
    match name:
        case "openai-responses" | "openai-chat":
            api: Any = name.removeprefix("openai-")
            return OpenAIAdapter(
                OpenAISettings(base_url=f"{url}/v1", api_key=key, api=api, model="gpt-4o-mini")
            )
        case "anthropic":
            return AnthropicAdapter(AnthropicSettings(base_url=url, api_key=key, model="claude-sonnet-4-5"))
        case "gemini":
            return GeminiAdapter(GeminiSettings(base_url=url, api_key=key, model="gemini-2.5-flash"))
        case "ollama":
            return OllamaAdapter(OllamaSettings(base_url=url, model="llama3.2"))
    model = "anthropic.claude-3-5-sonnet-20241022-v2:0"
    # aimock does not know cache points among the tools, and ends such a request with an error of its own.
    settings = BedrockSettings(model=model, region="us-east-1", endpoint_url=url, prompt_cache=False)
    return BedrockAdapter(settings)


ADAPTERS = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama", "bedrock")
every_adapter = pytest.mark.parametrize("name", ADAPTERS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of the server, and of the same with its stream for Bedrock filtered."""
    try:
        folder = tmp_path_factory.mktemp("aimock")
        with aimock_server(folder, FIXTURES) as url, without_empty_starts(url) as filtered:
            yield url, filtered
    except Missing as error:
        pytest.skip(f"skipped: {error}")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("A_KEY", KEY)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))


@pytest.fixture
async def adapter(server: tuple[str, str], name: str) -> AsyncIterator[ModelAdapter]:
    made = adapter_of(name, server[name == "bedrock"])
    yield made
    await made.aclose()


def asked(text: str, *more: Message, tools: tuple[ToolSchema, ...] = ()) -> ModelRequest:
    first = Message(id="1", role="user", content=text)
    return ModelRequest(messages=(first, *more), tools=tools, max_tokens=200)


async def all_events(adapter: ModelAdapter, request: ModelRequest) -> list[ModelEvent]:
    async with aclosing(adapter.stream(request)) as events:  # type: ignore[type-var]
        return [event async for event in events]


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


@every_adapter
async def test_text_and_usage(adapter: ModelAdapter) -> None:
    """The answer arrives complete, with one finish at the end and counted tokens."""
    events = await all_events(adapter, asked("How is the sea?"))
    assert text_of(events) == SENTENCE
    assert isinstance(events[-1], Finish)
    assert events[-1].reason == "stop"
    counted = (events[-1].usage.input_tokens, events[-1].usage.output_tokens)
    assert counted == ((0, 0) if adapter.name == "ollama" else (12, 9))  # aimock counts nothing for Ollama


@every_adapter
async def test_parallel_calls_and_their_results(adapter: ModelAdapter) -> None:
    """Two calls arrive with their arguments; the next request has their results in the form that the server takes."""
    events = await all_events(adapter, asked("Look twice.", tools=(LOOK,)))
    calls = [event.call for event in events if isinstance(event, Call)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("look", {"at": "sea"}),
        ("look", {"at": "sky"}),
    ]
    assert len({call.id for call in calls}) == 2
    assert isinstance(events[-1], Finish)
    assert events[-1].reason == "tool_calls"
    results = (
        Message(id=call.id, role="tool", content="waves", tool_call_id=call.id, name="look") for call in calls
    )
    answered = Message(id="2", role="assistant", content="", tool_calls=tuple(calls))
    assert (
        text_of(await all_events(adapter, asked("Look twice.", answered, *results, tools=(LOOK,)))) == WAVES
    )


@every_adapter
async def test_a_cut_answer_is_no_answer(adapter: ModelAdapter) -> None:
    """A stream that ends early is an interrupted answer, whatever arrived before."""
    with pytest.raises(ModelError) as caught:
        await all_events(adapter, asked("Cut it."))
    assert caught.value.fault in ("interrupted", "bad_response"), caught.value


@every_adapter
@pytest.mark.parametrize(
    ("status", "faults"),
    [
        (401, {"authentication"}), (429, {"rate_limited"}), (500, {"unavailable"}),
        (529, {"unavailable", "rate_limited"}),
    ],
)  # fmt: skip
async def test_failures_have_their_fault(adapter: ModelAdapter, status: int, faults: set[str]) -> None:
    """The status decides, in whatever form the body is; no error has the key."""
    with pytest.raises(ModelError) as caught:
        await all_events(adapter, asked(f"Fail {status}."))
    assert caught.value.fault in faults, caught.value
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("name", ["openai-chat"])
async def test_vectors(adapter: ModelAdapter) -> None:
    """Each text has a vector; the same text has the same one."""
    found = await adapter.embed(["sea", "wind", "sea"], model="embed-model")
    assert len(found.vectors) == 3
    assert found.vectors[0] == found.vectors[2] != found.vectors[1]


@pytest.mark.parametrize("name", ["openai-chat"])
async def test_audio(adapter: ModelAdapter) -> None:
    """A recording becomes text by a form, and a text becomes audio."""
    audio = Audio(media_type="audio/ogg", data=b"OggS of a voice")
    said = await adapter.transcribe(TranscriptionRequest(audio=audio, language="en"))
    assert said.text == "buy beans"
    request = SpeechRequest(text="Buy beans.")
    parts = [event.data async for event in adapter.speak(request) if isinstance(event, SpeechAudio)]
    assert b"".join(parts) == b"spoken beans"
