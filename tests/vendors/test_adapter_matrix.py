"""Every cell of the table of adapters: what one is said to do it does on its vendor's API, and nothing else."""

import base64
import importlib
import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from trunkline import Image, Message, Secret
from trunkline.api.model import (
    Audio,
    Call,
    DocumentFile,
    Finish,
    ModelAdapter,
    ModelError,
    ModelEvent,
    ModelRequest,
    Reasoning,
    ReasoningDone,
    ResponseFormat,
    SpeechAudio,
    SpeechRequest,
    Text,
    TranscriptionRequest,
)
from trunkline.testing.adapter_suite import CALLS, REASONING_TEXT, request_for
from trunkline.testing.scripted_provider import ScriptedProvider
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
from trunkline_openai.sagemaker import SageMakerAdapter
from trunkline_openai.sagemaker_settings import SageMakerSettings
from trunkline_openai.settings import OpenAISettings

pytestmark = pytest.mark.anyio

KEY = Secret(env="A_KEY")
CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
LOW = {"reasoning_effort": "low"}
PICTURE = Image(media_type="image/png", data=b"\x89PNG\r\n\x1a\n picture")
PAPER = DocumentFile(media_type="application/pdf", name="paper.pdf", data=b"%PDF-1.7 paper")
SCHEMA = ResponseFormat(
    name="sea",
    schema={
        "type": "object",
        "properties": {"calm": {"type": "boolean"}},
        "required": ["calm"],
        "additionalProperties": False,
    },
)

Make = Callable[[ScriptedProvider], ModelAdapter]

ADAPTERS: dict[str, Make] = {
    "OpenAI": lambda at: OpenAIAdapter(OpenAISettings(base_url=at.url, api_key=KEY, api="responses", model="gpt-5.5")),
    "Chat Completions": lambda at: OpenAIAdapter(OpenAISettings(base_url=at.url, api_key=KEY, model="scripted")),
    "Anthropic": lambda at: AnthropicAdapter(
        AnthropicSettings(base_url=at.address, api_key=KEY, model="claude-sonnet-4-5", parameters=LOW)
    ),
    "Bedrock": lambda at: BedrockAdapter(
        BedrockSettings(endpoint_url=at.address, region="us-east-1", model=CLAUDE, parameters=LOW)
    ),
    "Gemini": lambda at: GeminiAdapter(GeminiSettings(base_url=at.address, api_key=KEY, model="gemini-3.8-flash")),
    "Ollama": lambda at: OllamaAdapter(OllamaSettings(base_url=at.address, model="scripted")),
    "SageMaker": lambda at: SageMakerAdapter(
        SageMakerSettings(endpoint_url=at.address, region="us-east-1", model="scripted")
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("A_KEY", "sk-test")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


class Probe:
    """Asks one adapter for everything in the table."""

    def __init__(self, adapter: ModelAdapter, provider: ScriptedProvider) -> None:
        self.adapter = adapter
        self.provider = provider

    async def events(self, program: str, *messages: Message, **fields: Any) -> list[ModelEvent]:
        request = request_for(program)
        fields = {"model": "", **fields}
        if messages:
            fields["messages"] = messages
        asked = replace(request, **fields)
        return [event async for event in self.adapter.stream(asked)]

    @property
    def sent(self) -> str:
        return json.dumps(self.provider.answer_requests[-1].body)

    async def finish(self, program: str, **fields: Any) -> Finish:
        last = (await self.events(program, **fields))[-1]
        assert isinstance(last, Finish)
        return last


async def streams(probe: Probe) -> bool:
    return len(_of(Text, await probe.events("say:word by word by word"))) > 1


async def reasons(probe: Probe) -> bool:
    events = await probe.events(f"think:{REASONING_TEXT} ;; say:Calm.")
    return "".join(one.text for one in _of(Reasoning, events)) == REASONING_TEXT


async def reasons_between_steps(probe: Probe) -> bool:
    program = f'think:{REASONING_TEXT} ;; call:look {{"at": "sea"}} ;; say:Calm.'
    events = await probe.events(program)
    blocks, calls = _of(ReasoningDone, events), _of(Call, events)
    if not blocks:
        return False
    said = "".join(one.text for one in _of(Text, events))
    answered = Message(
        id="2", role="assistant", content=said, tool_calls=tuple(one.call for one in calls),
        reasoning=tuple(one.block for one in blocks),
    )  # fmt: skip
    call = calls[0].call
    result = Message(id="3", role="tool", content="waves", tool_call_id=call.id, name=call.name)
    await probe.events(program, Message(id="1", role="user", content=program), answered, result)
    longest = max(_texts(blocks[0].block.data), key=len)
    return json.dumps(longest)[1:-1] in probe.sent


async def calls_in_parallel(probe: Probe) -> bool:
    events = await probe.events('parallel:look {"at": "sea"} listen {"to": "wind"}')
    return [(one.call.name, one.call.arguments) for one in _of(Call, events)] == list(CALLS)


async def keeps_raw_arguments(probe: Probe) -> bool:
    with suppress(ModelError):
        calls = _of(Call, await probe.events("badcall:look at the sea"))
        return [list(one.call.arguments) for one in calls] == [[""]]
    return False


async def sends_images(probe: Probe) -> bool:
    if not probe.adapter.sees:
        return False
    await probe.events("", Message(id="1", role="user", content="say:A picture.", images=(PICTURE,)))
    return base64.b64encode(PICTURE.data).decode() in probe.sent


async def sends_documents(probe: Probe) -> bool:
    if not probe.adapter.reads:
        return False
    await probe.events("", Message(id="1", role="user", content="say:A paper.", documents=(PAPER,)))
    return base64.b64encode(PAPER.data).decode() in probe.sent


async def counts(probe: Probe) -> bool:
    usage = (await probe.finish("say:Calm tonight.")).usage
    return usage.input_tokens > 0 and usage.output_tokens > 0


async def counts_cached(probe: Probe) -> bool:
    await probe.finish("say:This is said twice, word for word.")
    return (await probe.finish("say:This is said twice, word for word.")).usage.cached_tokens > 0


async def marks_cache(probe: Probe) -> bool:
    await probe.finish("say:Calm.")
    return "cache_control" in probe.sent or "cachePoint" in probe.sent


async def tells_limit(probe: Probe) -> bool:
    return (await probe.finish("limit:3")).reason == "max_tokens"


async def tells_filter(probe: Probe) -> bool:
    return (await probe.finish("say:No. ;; filter")).reason == "content_filter"


async def continues(probe: Probe) -> bool:
    if not probe.adapter.continues:
        return False
    await probe.events("say:Calm.", partial="The harbour")
    return "The harbour" in probe.sent


async def enforces_schema(probe: Probe) -> bool:
    request = ModelRequest(messages=(Message(id="1", role="user", content="x"),), response_format=SCHEMA)
    return probe.adapter.enforces_format(request)


async def counts_before(probe: Probe) -> bool:
    message = Message(id="1", role="user", content="three words here")
    return bool(await probe.adapter.count_tokens(ModelRequest(messages=(message,))))


async def lists_models(probe: Probe) -> bool:
    return bool(await probe.adapter.models())


async def keeps_retry_after(probe: Probe) -> bool:
    with pytest.raises(ModelError) as caught:
        await probe.events("status:429")
    return caught.value.retry_after == 7


async def embeds(probe: Probe) -> bool:
    with suppress(ModelError):
        found = await probe.adapter.embed(["sea", "wind"])
        return probe.adapter.embeds and len(found.vectors) == 2
    return probe.adapter.embeds


async def transcribes(probe: Probe, *, translate: bool = False) -> bool:
    audio = Audio(media_type="audio/ogg", data=b"buy beans")
    with suppress(ModelError):
        said = await probe.adapter.transcribe(TranscriptionRequest(audio=audio, translate=translate))
        return probe.adapter.transcribes and said.text == "buy beans"
    return False


async def translates(probe: Probe) -> bool:
    return probe.adapter.translates and await transcribes(probe, translate=True)


async def speaks(probe: Probe) -> bool:
    with suppress(ModelError):
        events = [event async for event in probe.adapter.speak(SpeechRequest(text="buy beans"))]
        return bool(probe.adapter.speech_formats) and bool(_of(SpeechAudio, events))
    return False


PROBES: dict[str, Callable[[Probe], Awaitable[bool]]] = {
    "text as it arrives": streams,
    "reasoning, if the vendor shows it": reasons,
    "reasoning back to the vendor between tool steps": reasons_between_steps,
    "several tool calls in one answer": calls_in_parallel,
    "arguments that are no JSON kept as text": keeps_raw_arguments,
    "images": sends_images,
    "documents": sends_documents,
    "tokens of input and answer": counts,
    "tokens read from the prompt cache": counts_cached,
    "marks for the prompt cache": marks_cache,
    "an answer cut by the limit of tokens told": tells_limit,
    "an answer stopped by the content filter told": tells_filter,
    "a partial answer continued": continues,
    "JSON Schema enforced by the vendor": enforces_schema,
    "tokens counted before a request": counts_before,
    "models listed": lists_models,
    "`Retry-After` kept": keeps_retry_after,
    "vectors": embeds,
    "recordings transcribed": transcribes,
    "recordings translated": translates,
    "texts spoken": speaks,
}


def matrix(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, ...]]:
    """Return the table of the documentation."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    found: dict[str, tuple[str, ...]] = importlib.import_module("generator.adapters").MATRIX
    return found


@pytest.mark.parametrize("column", ADAPTERS)
async def test_each_adapter_does_what_the_table_says(column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell is asked for on the vendor's scripted API, with the vendor's SDK."""
    if column == "OpenAI":
        monkeypatch.setattr(OpenAISettings, "server", OpenAISettings.vendor)
    expected = {ability for ability, able in matrix(monkeypatch).items() if column in able}
    found = set()
    async with ScriptedProvider().serving() as provider:
        probe = Probe(ADAPTERS[column](provider), provider)
        for ability, does in PROBES.items():
            if await does(probe):
                found.add(ability)
        await probe.adapter.aclose()
    assert found == expected


def test_every_ability_of_the_table_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has no row without a probe, and no column without an adapter."""
    table = matrix(monkeypatch)
    assert set(table) == set(PROBES)
    assert {column for able in table.values() for column in able} == set(ADAPTERS)


def _of(kind: type[Any], events: Iterable[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def _texts(data: Any) -> list[str]:
    """Return all texts within a block of reasoning."""
    if isinstance(data, str):
        return [data]
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [text for value in inner for text in _texts(value)]
