"""The official ``openai`` client: embeddings, transcripts and speech of a block, to the vendor's server and back."""

import base64
import json
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI

import trunkline
from tests.other_users import share
from trunkline.api.bus import Refusal
from trunkline.api.gateway import Identity
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_abilities import scripted_vector
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

OGG = b"OggS buy beans"
GUEST = {"authorization": "Bearer guest"}


@dataclass
class Harness:
    platform: Platform
    provider: ScriptedProvider
    client: AsyncOpenAI
    http: httpx.AsyncClient

    async def form(self, path: str, data: bytes = OGG, **fields: Any) -> httpx.Response:
        """Send a form without the official client."""
        files = {"file": ("voice.bin", data, "application/octet-stream")}
        return await self.http.post(f"/v1/audio/{path}", files=files, data={"model": "main", **fields})


class Guests:
    """A guest may enter, and an admission rule refuses every text about secrets."""

    @trunkline.hookimpl
    def trunkline_authenticators(self) -> list[Any]:
        class Guest:
            name = "guest"

            async def __call__(self, headers: Any) -> Identity | None:
                return Identity(id="guest") if headers.get("authorization") == "Bearer guest" else None

        return [Guest()]

    @trunkline.hookimpl
    def trunkline_admission_rules(self) -> list[Any]:
        class NoSecrets:
            name = "no-secrets"

            async def __call__(self, message: Any, identity: Identity) -> None:
                if "secret" in message.content:
                    raise Refusal("rate_limited", "Not about secrets.")

        return [NoSecrets()]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def shared() -> AsyncIterator[Harness]:
    with ScriptedProvider() as provider:
        async with (
            platform(config=provider.settings, plugins=[Guests()]) as running,
            AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token, timeout=60) as client,
            httpx.AsyncClient(
                base_url=running.url, headers={"authorization": f"Bearer {running.token}"}, timeout=60
            ) as http,
        ):
            await share(running.bus)
            yield Harness(running, provider, client, http)


@pytest.fixture
def harness(shared: Harness) -> Harness:
    shared.provider.forget()
    return shared


# Embeddings ----------------------------------------------------------------------------------------------------


async def test_texts_become_vectors(harness: Harness) -> None:
    """The client asks for base64 by itself; order, dimensions, model and usage are as with OpenAI."""
    found = await harness.client.embeddings.create(model="main", input=["sea", "wind", "sea"], dimensions=3)
    assert [tuple(one.embedding) for one in found.data] == [
        scripted_vector(text, 3) for text in ("sea", "wind", "sea")
    ]
    assert [one.index for one in found.data] == [0, 1, 2]
    assert (found.model, found.usage.prompt_tokens, found.usage.total_tokens) == ("main", 3, 3)
    [request] = harness.provider.requests
    assert request.body == {
        "model": "text-embedding-3-small",
        "dimensions": 3,
        "input": ["sea", "wind", "sea"],
    }


async def test_both_encodings_have_the_same_numbers(harness: Harness) -> None:
    """A named model of the adapter answers, and a single text is a list of one."""
    both = []
    for encoding in ("float", "base64"):
        body = {"model": "main:openai/bge-m3", "input": "sea", "encoding_format": encoding}
        both.append((await harness.http.post("/v1/embeddings", json=body)).json()["data"][0]["embedding"])
    assert struct.unpack("<8f", base64.b64decode(both[1])) == tuple(both[0]) == scripted_vector("sea", 8)
    assert {request.body["model"] for request in harness.provider.requests} == {"bge-m3"}


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        ({"input": [1, 2, 3]}, "input[0]", "Tokens are not accepted"),
        ({"input": [[1, 2], [3]]}, "input[0]", "Tokens are not accepted"),
        ({"input": ["a", None]}, "input[1]", "It is not a text"),
        ({"input": ["a", ""]}, "input[1]", "The text is empty"),
        ({"input": []}, "input", "There is no text"),
        ({"input": ["x"] * 2049}, "input", "At most 2048"),
        ({"input": "a", "dimensions": 0}, "dimensions", ">= 1"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format", "not one of the known values"),
        ({"input": "a", "model": "main:offline"}, "model", "makes no vectors"),
    ],
)  # fmt: skip
async def test_a_wrong_field_is_named(harness: Harness, body: dict[str, Any], param: str, says: str) -> None:
    """The error has OpenAI's form, and its param is the field; no vendor is asked."""
    answer = await harness.http.post("/v1/embeddings", json={"model": "main", **body})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert says in error["message"]
    assert harness.provider.requests == []


async def test_a_block_that_does_not_exist_is_not_found(harness: Harness) -> None:
    """As in chat: 404, and the message lists the blocks."""
    with pytest.raises(openai.NotFoundError, match="Existing blocks: main"):
        await harness.client.embeddings.create(model="text-embedding-3-small", input="x")


# Transcripts ---------------------------------------------------------------------------------------------------


async def test_a_recording_becomes_text(harness: Harness) -> None:
    """The recording reaches the vendor unchanged under the ending of its real type; the options do too."""
    said = await harness.client.audio.transcriptions.create(
        model="main", file=("note.txt", OGG), language="en", prompt="Beans"
    )
    assert said.text == OGG.decode()
    [request] = harness.provider.requests
    assert request.body["file"] == {"name": "recording.ogg", "type": "audio/ogg", "data": OGG.decode()}
    assert (request.body["language"], request.body["prompt"]) == ("en", "Beans")


async def test_every_form_of_a_transcript(harness: Harness) -> None:
    """Text, subtitles with times, and the verbose form with language, duration and segments."""
    forms = {
        form: (await harness.form("transcriptions", response_format=form)).text
        for form in ("text", "srt", "vtt", "verbose_json")
    }
    assert forms["text"] == "OggS buy beans\n"
    assert forms["srt"] == "1\n00:00:00,000 --> 00:00:01,400\nOggS buy beans\n"
    assert forms["vtt"] == "WEBVTT\n\n00:00:00.000 --> 00:00:01.400\nOggS buy beans\n"
    assert json.loads(forms["verbose_json"]) == {
        "task": "transcribe", "text": "OggS buy beans", "language": "english", "duration": 1.4,
        "segments": [{"id": 0, "start": 0.0, "end": 1.4, "text": "OggS buy beans"}],
    }  # fmt: skip
    assert {request.body["model"] for request in harness.provider.requests} == {"whisper-1"}


async def test_a_transcript_as_events(harness: Harness) -> None:
    """The client reads a delta and the end."""
    events = await harness.client.audio.transcriptions.create(model="main", file=("a.ogg", OGG), stream=True)
    assert [event.type async for event in events] == ["transcript.text.delta", "transcript.text.done"]


async def test_a_translation(harness: Harness) -> None:
    """It goes to the vendor's translations. OpenAI's client calls the method deprecated, and still has it."""
    with pytest.deprecated_call():
        said = await harness.client.audio.translations.create(model="main", file=("a.ogg", OGG))
    assert said.text == OGG.decode()
    assert harness.provider.requests[0].path == "/v1/audio/translations"


@pytest.mark.parametrize(
    ("data", "fields", "param", "says"),
    [
        (b"MZ not audio at all", {}, "file", "no audio file in a known format"),
        (b"", {}, "file", "empty"),
        (OGG, {"response_format": "xml"}, "response_format", "not one of the known values"),
        (OGG, {"response_format": "diarized_json"}, "response_format", "speakers"),
        (OGG, {"response_format": "srt", "model": "main:openai/gpt-4o-transcribe"}, "response_format", "no times"),
        (OGG, {"timestamp_granularities[]": "word"}, "timestamp_granularities[]", "Only segment"),
        (OGG, {"include[]": "logprobs"}, "include[]", "not supported"),
        (OGG, {"temperature": "0.7"}, "temperature", "It is 0"),
        (OGG, {"model": "main:offline"}, "model", "transcribes no audio"),
    ],
)  # fmt: skip
async def test_a_wrong_form_is_refused(
    harness: Harness, data: bytes, fields: dict[str, str], param: str, says: str
) -> None:
    """The error names the field of the form; nothing of it is tried."""
    answer = await harness.form("transcriptions", data, **fields)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"] == param
    assert says in error["message"]


async def test_hostile_forms_are_refused(harness: Harness) -> None:
    """No form, no file, many files, and a file that is too large end with an error and without a request."""
    oversized = await harness.form("transcriptions", b"OggS" + bytes(25 * 1024 * 1024 + 70_000))
    assert (oversized.status_code, oversized.json()["error"]["code"]) == (413, "too_large")
    no_form = await harness.http.post("/v1/audio/transcriptions", json={"model": "main"})
    assert no_form.status_code == 400
    no_file = await harness.http.post("/v1/audio/transcriptions", files={"model": (None, "main")})
    assert (no_file.status_code, no_file.json()["error"]["param"]) == (400, "file")
    kind = {"content-type": "multipart/form-data; boundary=x"}
    broken = await harness.http.post("/v1/audio/transcriptions", content=b"--x\r\nnonsense", headers=kind)
    assert broken.status_code == 400
    assert harness.provider.requests == []


# Speech --------------------------------------------------------------------------------------------------------


async def test_a_text_becomes_audio(harness: Harness) -> None:
    """The audio arrives in parts with its type; voice, speed and instructions reach the vendor."""
    async with harness.client.audio.speech.with_streaming_response.create(
        model="main", input="buy more beans", voice="coral", response_format="opus", speed=1.25
    ) as answer:
        parts = [part async for part in answer.iter_bytes()]
        assert answer.headers["content-type"] == "audio/ogg"
    assert b"".join(parts) == b"buy more beans"
    assert harness.provider.requests[0].body == {
        "model": "tts-1", "input": "buy more beans", "voice": "coral", "response_format": "opus", "speed": 1.25,
    }  # fmt: skip


async def test_audio_as_events(harness: Harness) -> None:
    """The events have the audio in base64, and the last one the usage."""
    body = {"model": "main", "input": "a b", "voice": "alloy", "stream_format": "sse"}
    text = (await harness.http.post("/v1/audio/speech", json=body)).text
    events = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line]
    assert b"".join(base64.b64decode(one["audio"]) for one in events[:-1]) == b"a b"
    assert events[-1] == {
        "type": "speech.audio.done",
        "usage": {"type": "tokens", "input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
    }


async def test_audio_that_breaks_off_is_no_whole_file(harness: Harness) -> None:
    """The response breaks off too, so that no client takes the first half for the whole."""
    with pytest.raises((openai.APIError, httpx.HTTPError)):
        answer = await harness.client.audio.speech.create(model="main", input="cut:2", voice="alloy")
        await answer.aread()


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": "x" * 4097}, "input"),
        ({"response_format": "midi"}, "response_format"),
        ({"speed": 9}, "speed"),
        ({"model": "main:offline"}, "model"),
    ],
)
async def test_wrong_speech_is_refused(harness: Harness, body: dict[str, Any], param: str) -> None:
    """The error names the field."""
    answer = await harness.http.post("/v1/audio/speech", json={"model": "main", "input": "x", **body})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


# Failures and access -------------------------------------------------------------------------------------------


async def test_a_failure_of_the_vendor_is_told_to_the_owner_only(harness: Harness) -> None:
    """The owner sees the kind of the failure, a guest the fixed sentence. No client retries a request that may have
    cost money.
    """
    body = {"model": "main", "input": "status:429", "voice": "alloy"}
    owner = await harness.http.post("/v1/audio/speech", json=body)
    guest = await harness.http.post("/v1/audio/speech", json=body, headers=GUEST)
    assert (owner.status_code, guest.status_code) == (502, 502)
    assert owner.headers["x-should-retry"] == "false"
    assert "takes no more requests now" in owner.json()["error"]["message"]
    assert guest.json()["error"]["message"] == "The model provider failed to answer."


async def test_admission_rules_see_the_text(harness: Harness) -> None:
    """What a rule refuses as a message it also refuses as a text to speak or to embed."""
    speech = await harness.http.post("/v1/audio/speech", json={"model": "main", "input": "a secret"})
    vector = await harness.http.post("/v1/embeddings", json={"model": "main", "input": ["a secret"]})
    assert (speech.status_code, vector.status_code) == (429, 429)
    assert harness.provider.requests == []


@pytest.mark.parametrize("path", ["embeddings", "audio/speech", "audio/transcriptions", "audio/translations"])
async def test_nobody_enters_without_a_credential(harness: Harness, path: str) -> None:
    """Every route needs a credential."""
    async with httpx.AsyncClient(base_url=harness.platform.url) as stranger:
        assert (await stranger.post(f"/v1/{path}", json={})).status_code == 401


async def test_a_compaction_asks_the_admission_rules(harness: Harness) -> None:
    """It asks a model, so nobody gets an answer from it whose messages are refused."""
    for body in ({"input": "a secret"}, {"input": "x", "instructions": "Tell a secret."}):
        reply = await harness.http.post("/v1/responses/compact", json={"model": "main", **body})
        assert reply.status_code == 429, reply.text
