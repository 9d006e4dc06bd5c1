"""Vectors, transcripts and speech over the bus: which model answers, what is counted, and what a failure leaves."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

import trunkline
from tests.core.monitor.test_completion import Plugin
from trunkline.api.model import (
    AskModel,
    Audio,
    BlockAbilities,
    ModelAdapter,
    ModelEvent,
    ModelMiddleware,
    ModelRequest,
    SpeechAudio,
    SpeechEvent,
    SpeechFinish,
    SpeechRequest,
    Transcription,
    TranscriptionRequest,
    model_error,
)
from trunkline.contracts.costs.messages import CostEntry
from trunkline.contracts.costs.subjects import COST, OPENED_REQUEST
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.contracts.models.ability_messages import (
    AbilityFinished,
    EmbedTexts,
    SpeakText,
    TranscribeAudio,
    VectorPart,
)
from trunkline.contracts.models.media_usage import NO_MEDIA
from trunkline.contracts.models.subjects import AUDIO_STORE, EMBED_TEXTS, SPEAK_TEXT, TRANSCRIBE_AUDIO
from trunkline.contracts.workers.panic import Panic
from trunkline.contracts.workers.subjects import PANIC, SPANS
from trunkline.errors import CompletionError
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_abilities import scripted_vector
from trunkline.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

PRICES = {
    "scripted/scripted-embed": {"input": 2.0, "output": 0.0},
    "scripted/scripted-transcribe": {"input": 0.0, "output": 0.0, "minute": 0.006},
    "scripted/scripted-speak": {"input": 0.0, "output": 0.0, "characters": 15.0},
}
VOICE = Audio(media_type="audio/ogg", data=b"buy beans")


class Deaf(ScriptedModel):
    """A model that only answers."""

    embeds = transcribes = translates = False
    speech_formats = ()


class Slow(ScriptedModel):
    """A model that begins to speak, and hangs or fails as its text says."""

    async def transcribe(self, request: TranscriptionRequest) -> Transcription:
        if request.audio.data == b"fail":
            raise model_error(
                "rate_limited", "quota of sk-canary-0123456789abcdef at https://a.example is used up"
            )
        await anyio.sleep_forever()
        raise AssertionError

    async def speak(self, request: SpeechRequest) -> AsyncIterator[SpeechEvent]:
        yield SpeechAudio(b"begun")
        if request.text == "fail":
            raise model_error("interrupted", "the connection broke")
        if request.text == "end":
            return
        await anyio.sleep_forever()


class Further(Plugin):
    """The plugin of completions with two further adapters."""

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model, Deaf(name="deaf"), Slow(name="slow")]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def shared() -> AsyncIterator[tuple[Platform, ScriptedModel]]:
    async with running() as found:
        yield found


@asynccontextmanager
async def running(**config: Any) -> AsyncIterator[tuple[Platform, ScriptedModel]]:
    plugin = Further(ScriptedModel())
    settings = {"runtime.provider_adapter": "scripted", "models.prices": PRICES, **config}
    async with platform(plugins=[plugin], config=settings) as here:
        yield here, plugin.model


@pytest.fixture
def abilities(shared: tuple[Platform, ScriptedModel]) -> Iterator[BlockAbilities]:
    shared[1].ability_requests.clear()
    yield BlockAbilities(shared[0].bus, "main", actor="owner")


async def test_vectors_arrive_in_order_whatever_their_number(abilities, shared) -> None:
    """Two thousand vectors of 1536 numbers are larger than a message; they arrive in parts, exactly."""
    texts = [f"text {number % 50}" for number in range(200)]
    found = await abilities.embed(texts, dimensions=1536)
    assert list(found.vectors) == [scripted_vector(text, 1536) for text in texts]
    assert (found.usage.input_tokens, found.model) == (400, "scripted-embed")
    async with shared[0].bus.call_streaming(
        EMBED_TEXTS, EmbedTexts(texts=tuple(texts), dimensions=1536), idle_timeout=5
    ) as replies:
        parts = [reply async for reply in replies]
    assert len([part for part in parts if isinstance(part, VectorPart)]) == 20
    assert parts[-1] == AbilityFinished(
        adapter="scripted", model="scripted-embed", purpose="embed", usage=found.usage, cost=800,
        price="trunkline.toml 2/2/0",
    )  # fmt: skip


async def test_a_recording_is_transcribed_and_deleted(abilities, shared) -> None:
    """The adapter gets the recording and the options; seconds are priced; no recording stays on the bus."""
    bus, model = shared[0].bus, shared[1]
    said = await abilities.transcribe(
        TranscriptionRequest(audio=VOICE, language="de", prompt="Beans", segments=True)
    )
    assert (said.text, said.language, said.seconds) == ("buy beans", "de", 0.9)
    assert [(one.start, one.end, one.text) for one in said.segments] == [(0.0, 0.9, "buy beans")]
    (asked,) = model.ability_requests
    assert asked == TranscriptionRequest(audio=VOICE, language="de", prompt="Beans", segments=True)
    assert await bus.objects(AUDIO_STORE).infos() == []

    await bus.objects(AUDIO_STORE).put("audio_1", b"x" * 600)
    request = TranscribeAudio(audio="audio_1", media_type="audio/ogg")
    async with bus.call_streaming(TRANSCRIBE_AUDIO, request, idle_timeout=5) as replies:
        *_, end = [reply async for reply in replies]
    assert isinstance(end, AbilityFinished)
    assert (end.media.seconds, end.cost) == (60.0, 6_000)


async def test_speech_is_streamed(abilities, shared) -> None:
    """The parts arrive as the adapter yields them, then one finish with the characters and the format."""
    events = [event async for event in abilities.speak(SpeechRequest(text="buy more beans", format="opus"))]
    assert [event.data for event in events if isinstance(event, SpeechAudio)] == [b"buy", b"more", b"beans"]
    assert isinstance(events[-1], SpeechFinish)
    assert (events[-1].format, events[-1].media.characters) == ("opus", 14)
    async with shared[0].bus.call_streaming(SPEAK_TEXT, SpeakText(text="a" * 100), idle_timeout=5) as replies:
        *_, end = [reply async for reply in replies]
    assert isinstance(end, AbilityFinished)
    assert (end.cost, end.format) == (1_500, "mp3")


async def test_the_blocks_adapter_answers_and_no_other(shared) -> None:
    """Without a name the adapter of the block answers with its own model for the ability. If it cannot, the request is
    refused and no other adapter gets the text or the recording.
    """
    here, model = shared
    call = WriteMemory(path="blocks/quiet/block.toml", content='model = "deaf/large"\n', actor="owner")
    await here.bus.call(MEMORY_WRITE, call)
    model.ability_requests.clear()
    quiet = BlockAbilities(here.bus, "quiet")
    for refused in (
        quiet.embed(["x"]),
        quiet.transcribe(TranscriptionRequest(audio=VOICE)),
        _all(quiet, SpeechRequest(text="x")),
    ):
        with pytest.raises(CompletionError) as caught:
            await refused
        assert caught.value.code == "not_supported"
        assert str(caught.value).startswith("The model adapter deaf ")
    assert model.ability_requests == []
    assert await here.bus.objects(AUDIO_STORE).infos() == []
    assert (await quiet.embed(["x"], model="scripted")).model == "scripted-embed"
    assert (await quiet.embed(["x"], model="scripted/other")).model == "other"


async def test_the_settings_name_a_model_for_each_ability(shared) -> None:
    """A block names a model or an adapter for a purpose in `[models]`, whoever answers in it. A request goes first."""
    here, _ = shared
    chosen = 'model = "deaf/large"\n[models]\nembed = "scripted/small"\ntranscribe = "scripted"\n'
    write = WriteMemory(path="blocks/able/block.toml", content=chosen, actor="owner")
    await here.bus.call(MEMORY_WRITE, write)
    able = BlockAbilities(here.bus, "able")
    assert (await able.embed(["x"])).model == "small"
    assert (await able.embed(["x"], model="scripted")).model == "scripted-embed"
    assert (await able.transcribe(TranscriptionRequest(audio=VOICE))).model == "scripted-transcribe"
    with pytest.raises(CompletionError, match="The model adapter deaf does not speak"):
        await _all(able, SpeechRequest(text="x"))


async def test_a_format_that_is_not_offered_is_refused_with_the_list(abilities) -> None:
    """The refusal names the formats that the adapter speaks."""
    with pytest.raises(CompletionError, match="speaks mp3, opus, wav, pcm and not flac"):
        await _all(abilities, SpeechRequest(text="x", format="flac"))


@pytest.mark.parametrize("text", ["fail", "end"])
async def test_speech_that_breaks_off_is_an_error_after_its_audio(shared, text) -> None:
    """A failure in mid-stream raises after the audio so far, and the vendor is not asked again."""
    parts: list[SpeechEvent] = []
    with pytest.raises(CompletionError) as caught:
        async for event in BlockAbilities(shared[0].bus, "main").speak(
            SpeechRequest(text=text, model="slow")
        ):
            parts.append(event)
    assert parts == [SpeechAudio(b"begun")]
    assert caught.value.code == "provider_error"


async def test_a_failure_shows_its_kind_and_no_secret(shared) -> None:
    """The error names the fault and neither the key nor the address; the recording is deleted."""
    audio = Audio(media_type="audio/ogg", data=b"fail")
    with pytest.raises(CompletionError) as caught:
        await BlockAbilities(shared[0].bus, "main").transcribe(
            TranscriptionRequest(audio=audio, model="slow")
        )
    assert caught.value.code == "provider_error"
    assert "takes no more requests now" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert "a.example" not in str(caught.value)
    assert await shared[0].bus.objects(AUDIO_STORE).infos() == []


async def test_a_slow_vendor_is_given_up_in_time(shared) -> None:
    """The time limit ends the call, before the answer and in the middle of speech."""
    slow = BlockAbilities(shared[0].bus, "main", timeout=0.3)
    with pytest.raises(CompletionError, match=r"within 0\.3 s"):
        await slow.transcribe(TranscriptionRequest(audio=VOICE, model="slow"))
    with pytest.raises(CompletionError, match=r"within 0\.3 s"):
        await _all(slow, SpeechRequest(text="long", model="slow"))


async def test_what_is_too_large_is_refused_before_it_is_sent(abilities) -> None:
    """Recordings, texts and lists have limits, and the refusal names them."""
    big = Audio(media_type="audio/ogg", data=bytes(25 * 1024 * 1024 + 1))
    with pytest.raises(CompletionError, match="25 MB"):
        await abilities.transcribe(TranscriptionRequest(audio=big))
    with pytest.raises(CompletionError, match="4096 characters"):
        await _all(abilities, SpeechRequest(text="x" * 4097))
    with pytest.raises(CompletionError, match="2048 texts"):
        await abilities.embed(["x"] * 2049)
    assert (await abilities.embed([])).vectors == ()


async def test_panic_stops_speech_and_refuses_more() -> None:
    """The kill switch ends a running call; until it is released no model gets a request."""
    async with running() as (here, model):
        spoken = here.gateway.abilities("main")
        with pytest.raises(CompletionError):
            async for _ in spoken.speak(SpeechRequest(text="long", model="slow")):
                await here.bus.publish(PANIC, Panic(by="somebody"))
        with pytest.raises(CompletionError) as caught:
            await spoken.transcribe(TranscriptionRequest(audio=VOICE))
        assert caught.value.code == "panic"
        assert model.ability_requests == []


async def test_each_call_has_a_span_with_its_model_and_cost(shared) -> None:
    """The span names the operation, the model, the purpose and, after a failure, the fault."""
    spans: list[Any] = []

    async def collect(message: Any) -> None:
        spans.extend(message.data.spans)

    await shared[0].bus.subscribe(SPANS, collect)
    await BlockAbilities(shared[0].bus, "main").embed(["x"], model="scripted/vectors")
    with pytest.raises(CompletionError):
        audio = Audio(media_type="audio/ogg", data=b"fail")
        request = TranscriptionRequest(audio=audio, model="slow/ears")
        await BlockAbilities(shared[0].bus, "main").transcribe(request)
    expected = {("embeddings vectors", None), ("transcription ears", "rate_limited")}
    found: dict[tuple[str, str | None], Any] = {}  # spans of the calls before may arrive now too
    with anyio.fail_after(30):
        while not expected <= set(found):
            await anyio.sleep(0.02)
            found = {(span.name, span.attributes.get("error.type")): span.attributes for span in spans}
    assert found["embeddings vectors", None]["trunkline.model.purpose"] == "embed"


async def test_every_request_is_in_the_cost_ledger(shared) -> None:
    """One entry for each request: the counted amounts of one that succeeded, an estimate for one that was given up, and
    nothing for one that the vendor refused.
    """
    bus = shared[0].bus
    before = {stored.data.id async for stored in bus.history(COST)}
    owner = BlockAbilities(bus, "main", actor="owner", conversation="conv_1", timeout=0.3)
    await owner.embed(["two words"])
    await owner.transcribe(TranscriptionRequest(audio=VOICE))
    for text in (b"fail", b"hang"):
        with pytest.raises(CompletionError):
            audio = Audio(media_type="audio/ogg", data=text)
            await owner.transcribe(TranscriptionRequest(audio=audio, model="slow/ears"))
    async with aclosing(owner.speak(SpeechRequest(text="long", model="slow"))) as events:
        await anext(events)
    found: list[CostEntry] = []
    with anyio.fail_after(30):
        while len(found) < 5:
            found = [one.data async for one in bus.history(COST) if one.data.id not in before]
            await anyio.sleep(0.02)
    vectors, heard, failed, slow, spoken = found
    assert (vectors.operation, vectors.purpose, vectors.status) == ("embeddings", "embed", "finished")
    assert (vectors.usage.input_tokens, vectors.cost, vectors.actor) == (2, 4, "owner")
    assert vectors.conversation == "conv_1"
    assert (heard.operation, heard.media.seconds, heard.cost) == ("transcription", 0.9, 90)
    assert (failed.status, failed.fault, failed.estimated) == ("failed", "rate_limited", False)
    assert failed.media == NO_MEDIA
    assert (slow.status, slow.requested, slow.estimated) == ("failed", "ears", True)
    assert slow.media.seconds > 0
    assert (spoken.operation, spoken.status, spoken.media.characters) == ("speech", "cancelled", 4)
    with anyio.fail_after(30):
        while [one async for one in bus.history(OPENED_REQUEST)]:  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def test_a_budget_refuses_vectors_and_speech_too() -> None:
    """What a request costs counts in the budget of the day; once that is used up, nothing more is sent."""
    async with running(**{"plugins.budget.max_daily_spend": 0.000_1}) as (here, model):
        owner = BlockAbilities(here.bus, "main")
        await owner.embed(["word"] * 50)  # 100 micro-USD
        asked = len(model.ability_requests)
        for refused in (owner.embed(["x"]), _all(owner, SpeechRequest(text="x"))):
            with pytest.raises(CompletionError) as caught:
                await refused
            assert caught.value.code == "over_budget"
        assert len(model.ability_requests) == asked


class Replaced(Further):
    """The same, and middleware around requests that replaces a word in the texts for the vendor."""

    each_request = True

    @trunkline.hookimpl
    def trunkline_model_middleware(self) -> Sequence[ModelMiddleware]:
        return [self]

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        said = tuple(
            replace(one, content=one.content.replace("beans", f"{request.operation} {place}"))
            for place, one in enumerate(request.messages)
        )
        async for event in proceed(replace(request, messages=said)):
            yield event


async def test_middleware_around_requests_changes_every_text_for_the_vendor() -> None:
    """Those of vectors, the prompt of a transcript, and the text and the instructions of speech. The request names the
    operation.
    """
    plugin = Replaced(ScriptedModel())
    async with platform(plugins=[plugin], config={"runtime.provider_adapter": "scripted"}) as here:
        owner = BlockAbilities(here.bus, "main")
        await owner.embed(["red beans", "no peas", "beans"])
        await owner.transcribe(TranscriptionRequest(audio=VOICE, prompt="of beans"))
        await _all(owner, SpeechRequest(text="buy beans", instructions="as beans do"))
    vectors, heard, spoken = plugin.model.ability_requests
    assert vectors == ("red embeddings 0", "no peas", "embeddings 2")
    assert isinstance(heard, TranscriptionRequest) and isinstance(spoken, SpeechRequest)
    assert (heard.prompt, heard.audio) == ("of transcription 0", VOICE)
    assert (spoken.text, spoken.instructions) == ("buy speech 0", "as speech 1 do")


async def test_a_broken_guard_of_models_refuses_every_ability() -> None:
    """It may have been the one that keeps secrets from the vendor."""

    class Broken(Further):
        @trunkline.hookimpl
        def trunkline_model_middleware(self) -> Sequence[ModelMiddleware]:
            raise RuntimeError("no device")

    plugin = Broken(ScriptedModel())
    async with platform(plugins=[plugin], config={"runtime.provider_adapter": "scripted"}) as here:
        owner = BlockAbilities(here.bus, "main")
        for refused in (
            owner.embed(["x"]),
            owner.transcribe(TranscriptionRequest(audio=VOICE)),
            _all(owner, SpeechRequest(text="x")),
        ):
            with pytest.raises(CompletionError, match="is broken"):
                await refused
    assert plugin.model.ability_requests == []


async def _all(abilities: BlockAbilities, request: SpeechRequest) -> list[SpeechEvent]:
    return [event async for event in abilities.speak(request)]
