"""Transcripts and speech by the OpenAI adapter: what is sent, what is read, and how failures are told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from trunkline.api.model import (
    Audio,
    ModelError,
    SpeechAudio,
    SpeechEvent,
    SpeechFinish,
    SpeechRequest,
    TranscriptionRequest,
    TranscriptSegment,
)
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.settings import VENDOR_SETTINGS, OpenAISettings

pytestmark = pytest.mark.anyio

KEY = "sk-canary-0123456789abcdef"


@asynccontextmanager
async def asking(
    monkeypatch: pytest.MonkeyPatch, vendor: str = "openai"
) -> AsyncIterator[tuple[OpenAIAdapter, ScriptedProvider]]:
    """An adapter of the vendor's section whose server is the scripted one."""
    kind = VENDOR_SETTINGS.get(vendor, OpenAISettings)
    monkeypatch.setenv("A_KEY", KEY)
    async with ScriptedProvider().serving() as provider:
        from trunkline import Secret

        settings = kind(base_url=provider.url, api_key=Secret(env="A_KEY"))
        adapter = OpenAIAdapter(settings)
        try:
            yield adapter, provider
        finally:
            await adapter.aclose()


@pytest.fixture
def openai_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scripted server count as OpenAI's own."""
    monkeypatch.setattr(OpenAISettings, "server", OpenAISettings.vendor)


def recording(data: bytes, media_type: str = "audio/ogg") -> Audio:
    return Audio(media_type=media_type, data=data)


async def test_a_recording_is_sent_as_a_form(monkeypatch, openai_itself):
    """The file has an ending that the server knows; model, language and prompt are fields; tokens are counted."""
    async with asking(monkeypatch) as (adapter, provider):
        said = await adapter.transcribe(
            TranscriptionRequest(
                audio=recording(b"buy beans", "audio/ogg; codecs=opus"), language="en", prompt="Beans"
            )
        )
        (request,) = provider.requests
    assert request.path == "/v1/audio/transcriptions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "file": {"name": "recording.ogg", "type": "audio/ogg", "data": "buy beans"},
        "model": "gpt-transcribe", "response_format": "json", "prompt": "Beans", "language": "en",
    }  # fmt: skip
    assert (said.text, said.language, said.model) == ("buy beans", "en", "gpt-transcribe")
    assert (said.seconds, said.media.seconds) == (0.9, 0.9)


async def test_models_that_are_billed_by_tokens_tell_them(monkeypatch, openai_itself):
    """The tokens of the answer are the usage; no seconds are told."""
    async with asking(monkeypatch) as (adapter, _):
        said = await adapter.transcribe(
            TranscriptionRequest(audio=recording(b"buy beans"), model="gpt-4o-transcribe")
        )
    assert (said.usage.input_tokens, said.usage.output_tokens, said.media.seconds) == (3, 2, 0.0)


async def test_times_and_translations_come_from_whisper(monkeypatch, openai_itself):
    """OpenAI's other models offer neither, so whisper is asked unless the request names a model."""
    async with asking(monkeypatch) as (adapter, provider):
        timed = await adapter.transcribe(TranscriptionRequest(audio=recording(b"0123456789"), segments=True))
        await adapter.transcribe(
            TranscriptionRequest(audio=recording(b"bohnen"), translate=True, language="de")
        )
        named = await adapter.transcribe(
            TranscriptionRequest(audio=recording(b"who"), segments=True, model="gpt-4o-transcribe-diarize")
        )
        asked = [(one.path, one.body["model"], one.body.get("language")) for one in provider.requests]
    assert timed.segments == (TranscriptSegment(start=0.0, end=1.0, text="0123456789"),)
    assert (timed.seconds, timed.media.seconds, timed.language) == (1.0, 1.0, "english")
    assert named.segments == (TranscriptSegment(start=0.0, end=0.3, text="who", speaker="A"),)
    assert asked == [
        ("/v1/audio/transcriptions", "whisper-1", None),
        ("/v1/audio/translations", "whisper-1", None),
        ("/v1/audio/transcriptions", "gpt-4o-transcribe-diarize", None),
    ]


async def test_speech_is_read_as_events_with_tokens(monkeypatch, openai_itself):
    """OpenAI's newer models send events, and the last one counts."""
    async with asking(monkeypatch) as (adapter, provider):
        request = SpeechRequest(text="buy more beans", voice="coral", format="opus", instructions="Cheerful.")
        events = [event async for event in adapter.speak(request)]
        (sent,) = provider.requests
    assert sent.body == {
        "model": "gpt-4o-mini-tts", "input": "buy more beans", "response_format": "opus", "voice": "coral",
        "instructions": "Cheerful.", "stream_format": "sse",
    }  # fmt: skip
    assert b"".join(event.data for event in events if isinstance(event, SpeechAudio)) == b"buy more beans"
    assert len(events) == 4
    finish = events[-1]
    assert isinstance(finish, SpeechFinish)
    assert (finish.usage.input_tokens, finish.usage.output_tokens, finish.media.characters) == (3, 3, 14)


async def test_speech_of_other_servers_is_read_as_bytes(monkeypatch):
    """They are asked without events, and the characters are counted. A model that takes no instructions gets none."""
    async with asking(monkeypatch) as (adapter, provider):
        request = SpeechRequest(text="a b", speed=1.5, instructions="Cheerful.")
        events = [event async for event in adapter.speak(request)]
        (sent,) = provider.requests
    assert sent.body == {
        "model": "tts-1", "input": "a b", "response_format": "mp3", "voice": "alloy", "speed": 1.5
    }  # fmt: skip
    assert b"".join(event.data for event in events[:-1] if isinstance(event, SpeechAudio)) == b"a b"
    assert events[-1] == SpeechFinish(format="mp3", media=events[-1].media, model="tts-1")
    assert events[-1].media.characters == 3


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("status:401", "authentication"), ("status:429", "rate_limited"), ("status:500", "unavailable"),
        ("garbage", "bad_response"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ability", ["transcribe", "speak", "speak_events"])
async def test_failures_have_their_fault_and_no_key(monkeypatch, request, ability, program, fault):
    """Each failure of the server is a ModelError of the right kind, and the key is in none."""
    if ability == "speak_events":
        request.getfixturevalue("openai_itself")
    async with asking(monkeypatch) as (adapter, provider):
        with pytest.raises(ModelError) as caught:
            if ability == "transcribe":
                await adapter.transcribe(TranscriptionRequest(audio=recording(program.encode())))
            else:
                await _all(adapter, program)
        assert len(provider.requests) == 1
    assert caught.value.fault == fault, caught.value
    assert KEY not in str(caught.value)
    assert (caught.value.retry_after == 7) == (program == "status:429")


@pytest.mark.parametrize(("program", "fault"), [("cut:2", "interrupted"), ("empty", "bad_response")])
@pytest.mark.parametrize("events", [False, True])
async def test_audio_that_breaks_off_has_no_finish(monkeypatch, request, events, program, fault):
    """Audio that ends before its end, or that is none, is a failure after the parts that came."""
    if events:
        request.getfixturevalue("openai_itself")
    async with asking(monkeypatch) as (adapter, _):
        with pytest.raises(ModelError) as caught:
            await _all(adapter, program)
    assert caught.value.fault == fault, caught.value


async def _all(adapter: OpenAIAdapter, text: str) -> list[SpeechEvent]:
    return [event async for event in adapter.speak(SpeechRequest(text=text))]


@pytest.mark.parametrize(
    ("vendor", "why"),
    [("deepseek", "has no such transcripts"), ("vllm", "name a model for transcripts, as vllm/MODEL")],
)
async def test_a_vendor_that_cannot_refuses_without_a_request(monkeypatch, vendor, why):
    """No recording is sent to a server that has no transcripts, or no default model for them."""
    async with asking(monkeypatch, vendor) as (adapter, provider):
        with pytest.raises(ModelError, match=why):
            await adapter.transcribe(TranscriptionRequest(audio=recording(b"x")))
        with pytest.raises(ModelError, match="does not speak"):
            await _all(adapter, "x")
        assert provider.requests == []


async def test_audio_of_an_unknown_type_is_not_sent(monkeypatch):
    """A server knows a recording by the ending of its file, and an unknown type has none."""
    async with asking(monkeypatch) as (adapter, provider):
        with pytest.raises(ModelError, match="no server is known to read text/html"):
            await adapter.transcribe(TranscriptionRequest(audio=recording(b"x", "text/html")))
        assert provider.requests == []
