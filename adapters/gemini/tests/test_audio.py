"""Transcripts and speech by the Gemini adapter: what is sent, what is read, and how failures are told."""

import base64
import io
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from trunkline import Secret
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
from trunkline_gemini.adapter import GeminiAdapter
from trunkline_gemini.settings import GeminiSettings

pytestmark = pytest.mark.anyio

KEY = "gm-canary-0123456789abcdef"


@asynccontextmanager
async def asking(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[GeminiAdapter, ScriptedProvider]]:
    monkeypatch.setenv("A_KEY", KEY)
    async with ScriptedProvider().serving() as provider:
        adapter = GeminiAdapter(GeminiSettings(base_url=provider.address, api_key=Secret(env="A_KEY")))
        try:
            yield adapter, provider
        finally:
            await adapter.aclose()


def recording(data: bytes, **more: Any) -> TranscriptionRequest:
    return TranscriptionRequest(audio=Audio(media_type="audio/mpeg", data=data), **more)


async def _all(adapter: GeminiAdapter, request: SpeechRequest) -> list[SpeechEvent]:
    return [event async for event in adapter.speak(request)]


async def test_a_model_writes_a_recording_down(monkeypatch):
    """The recording is sent inline by the vendor's name of its type; the answer is JSON with text and language."""
    async with asking(monkeypatch) as (adapter, provider):
        said = await adapter.transcribe(recording(b"buy beans", language="en", prompt="Beans", segments=True))
        (request,) = provider.requests
    recorded, instruction = request.body["contents"][0]["parts"]
    assert recorded == {
        "inlineData": {"mimeType": "audio/mp3", "data": base64.b64encode(b"buy beans").decode()}
    }
    assert "word by word" in instruction["text"]
    assert "spoken is en" in instruction["text"]
    assert instruction["text"].endswith("from the beginning.")
    assert (said.text, said.language) == ("buy beans", "en")
    assert said.segments == (TranscriptSegment(start=0.0, end=0.9, text="buy beans"),)
    assert said.usage.output_tokens > 0
    assert said.model == "gemini-3.8-flash"


async def test_a_translation_is_asked_for_in_words(monkeypatch):
    """The instruction asks for English."""
    async with asking(monkeypatch) as (adapter, provider):
        assert (await adapter.transcribe(recording(b"Bohnen", translate=True))).text == "Bohnen"
        assert "in English" in provider.requests[0].body["contents"][0]["parts"][1]["text"]


async def test_speech_becomes_a_wav_file(monkeypatch):
    """The samples of all events are one file with the right length, voice and style."""
    async with asking(monkeypatch) as (adapter, provider):
        request = SpeechRequest(text="ab cd ef", voice="Puck", instructions="Cheerful")
        *parts, end = await _all(adapter, request)
        (sent,) = provider.requests
    assert sent.path == "/v1beta/models/gemini-3.8-flash-tts:streamGenerateContent"
    assert sent.body["contents"][0]["parts"] == [
        {"text": "ab cd ef", "speechMetadata": {"style": "Cheerful"}}
    ]
    assert sent.body["generationConfig"] == {
        "responseModalities": ["AUDIO"],
        "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Puck"}}},
    }
    with wave.open(
        io.BytesIO(b"".join(part.data for part in parts if isinstance(part, SpeechAudio)))
    ) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        assert file.readframes(99) == b"ab cd ef"
    assert isinstance(end, SpeechFinish)
    assert (end.format, end.usage.input_tokens, end.usage.output_tokens) == ("wav", 3, 3)


async def test_samples_are_streamed(monkeypatch):
    """Samples without a head are passed on as they arrive; earlier models take the style within the text."""
    async with asking(monkeypatch) as (adapter, provider):
        request = SpeechRequest(
            text="a b c", format="pcm", model="gemini-2.5-flash-preview-tts", instructions="Say it"
        )
        events = await _all(adapter, request)
        assert provider.requests[0].body["contents"][0]["parts"] == [{"text": "Say it: a b c"}]
    assert len(events) > 3
    assert b"".join(one.data for one in events if isinstance(one, SpeechAudio)).endswith(b"a b c")


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("status:401", "authentication"), ("status:429", "rate_limited"), ("status:503", "unavailable"),
        ("cut:2", "interrupted"), ("quit:2", "interrupted"), ("malformed:2", "bad_response"),
        ("garbage", "bad_response"), ("limit:2", "bad_response"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ability", ["transcribe", "speak"])
async def test_failures_have_their_fault_and_no_key(monkeypatch, ability, program, fault):
    """Each failure is a ModelError of the right kind, and the key is in none."""
    async with asking(monkeypatch) as (adapter, provider):
        with pytest.raises(ModelError) as caught:
            if ability == "transcribe":
                await adapter.transcribe(recording(program.encode()))
            else:
                await _all(adapter, SpeechRequest(text=program))
        assert len(provider.requests) == 1
    assert caught.value.fault == fault, caught.value
    assert KEY not in str(caught.value)


async def test_what_the_vendor_does_not_take_is_not_sent(monkeypatch):
    """Formats, types, sizes and a speed that Gemini does not take are refused with the reason."""
    async with asking(monkeypatch) as (adapter, provider):
        with pytest.raises(ModelError, match="formats of speech are wav, pcm"):
            await _all(adapter, SpeechRequest(text="x", format="mp3"))
        with pytest.raises(ModelError, match="takes no speed"):
            await _all(adapter, SpeechRequest(text="x", speed=2.0))
        with pytest.raises(ModelError, match="does not read video/mp4"):
            audio = Audio(media_type="video/mp4", data=b"x")
            await adapter.transcribe(TranscriptionRequest(audio=audio))
        with pytest.raises(ModelError, match="at most 14 MB"):
            await adapter.transcribe(recording(bytes(14 * 1024 * 1024 + 1)))
        assert provider.requests == []
