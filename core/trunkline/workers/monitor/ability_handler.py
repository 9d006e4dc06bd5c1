"""Answers requests for vectors, transcripts and speech over the bus (``model.embed``, ``model.transcribe``,
``model.speak``).

They have the adapters, prices, limits and spans of a model call. They do not pass the model middleware: its contract is
messages in, text and tool calls out, and what it does (repairing transcripts, validating answers, falling back to
another chat model) has no meaning for audio and vectors. The cost ledger records every request, and the kill switch is
checked before each.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Literal, TypeVar

import anyio
from opentelemetry import trace

from trunkline.contracts.costs.messages import CostEntry
from trunkline.contracts.models.abilities import (
    Audio,
    SpeechAudio,
    SpeechEvent,
    SpeechFinish,
    SpeechFormat,
    SpeechRequest,
    Transcription,
    TranscriptionRequest,
)
from trunkline.contracts.models.ability_messages import (
    BAD_FORMAT,
    MAX_AUDIO_BYTES,
    NOT_ABLE,
    AbilityFinished,
    AudioTranscribed,
    EmbedReply,
    EmbedTexts,
    SpeakReply,
    SpeakText,
    SpeechPart,
    TranscribeAudio,
    TranscribeReply,
    VectorPart,
)
from trunkline.contracts.models.subjects import AUDIO_STORE
from trunkline.contracts.models.vectors import pack_vectors
from trunkline.errors import FIXED_SENTENCES, ErrorCode, ModelError
from trunkline.home.kill_switch import STOPPED_SENTENCE, KillSwitch
from trunkline.runtime.ability_ledger import (
    AbilityRecord,
    Amount,
    ability_entry,
    estimate_recording,
    estimate_speech,
    estimate_texts,
)
from trunkline.runtime.cost_ledger import CostLedger
from trunkline.telemetry import semconv
from trunkline.workers.monitor.block_profile import BlockProfile
from trunkline.workers.monitor.live_calls import Deadline, LiveCalls, refused
from trunkline.workers.monitor.model_call import ModelCallConfig, model_attributes
from trunkline.workers.monitor.model_registry import ModelRegistry, SelectedModel
from trunkline_bus import Bus, BusError, Refusal, Request, start_span

log = logging.getLogger(__name__)
tracer = trace.get_tracer("trunkline.monitor")

DEFAULT_TIMEOUT = 600.0
"""Seconds for a call without a time limit of its own. A vendor takes minutes for the longest recordings."""

MAX_PART = 64 * 1024
"""The largest part of audio in one reply, in bytes."""

AbilityModel = Literal["embedding_model", "transcription_model", "speech_model"]
"""The adapter's attribute with its own model for an ability."""

Asked = TypeVar("Asked", EmbedTexts, TranscribeAudio, SpeakText)


class AbilityHandler:
    """Runs the calls for abilities of this monitor. ``profile`` returns a block's profile; requests without a block use
    ``block``. While the kill switch is engaged no model is called.
    """

    def __init__(
        self,
        bus: Bus,
        models: ModelRegistry,
        profile: Callable[[str], Awaitable[BlockProfile]],
        block: str,
        call_config: ModelCallConfig,
        kill_switch: KillSwitch,
        ledger: CostLedger,
        worker: str,
    ) -> None:
        self._bus = bus
        self._ledger = ledger
        self._worker = worker
        self._models = models
        self._profile = profile
        self._block = block
        self._call_config = call_config
        self._kill_switch = kill_switch
        self._calls = LiveCalls()
        self.drain = self._calls.drain
        self.stop = self._calls.stop

    async def embed(self, request: Request[EmbedTexts]) -> AsyncIterator[EmbedReply]:
        """Yield the vectors in parts, then the end. Raises Refusal with a code; see ``ModelAbilities``."""
        asked = request.data
        choice = await self._choose(request, "embedding_model")
        if not choice.adapter.embeds:
            raise _not_able(choice, "makes no vectors")
        estimate = estimate_texts(asked.texts)
        async with self._calling(semconv.EMBEDDINGS, choice, request, estimate) as (record, deadline):
            found = await self._calls.step(
                lambda: choice.adapter.embed(asked.texts, model=choice.model, dimensions=asked.dimensions),
                deadline,
            )
            entry = record.finish(found.model, Amount(usage=found.usage))
        for count, data in pack_vectors(found.vectors):
            yield VectorPart(count=count, data=data)
        yield _finished(entry)

    async def transcribe(self, request: Request[TranscribeAudio]) -> AsyncIterator[TranscribeReply]:
        """Yield the text, then the end. Raises Refusal with a code; see ``ModelAbilities``."""
        asked = request.data
        try:
            choice = await self._choose_ears(request)
            audio = await self._recording(asked)
            estimate = estimate_recording(len(audio.data))
            async with self._calling(semconv.TRANSCRIPTION, choice, request, estimate) as (record, deadline):
                said = await self._calls.step(lambda: _transcribe(asked, audio, choice), deadline)
                entry = record.finish(said.model, Amount(usage=said.usage, media=said.media))
        finally:
            with anyio.CancelScope(shield=True):
                await self._delete(asked.audio)
        yield AudioTranscribed(
            text=said.text, language=said.language, seconds=said.seconds, segments=said.segments
        )
        yield _finished(entry)

    async def speak(self, request: Request[SpeakText]) -> AsyncIterator[SpeakReply]:
        """Yield the audio in parts as it arrives, then the end. Raises Refusal with a code; see ``ModelAbilities``."""
        asked = request.data
        choice = await self._choose(request, "speech_model")
        format = _speech_format(choice, asked.format)
        speech = SpeechRequest(
            text=asked.text,
            model=choice.model,
            voice=asked.voice,
            format=format,
            instructions=asked.instructions,
            speed=asked.speed,
        )
        estimate = estimate_speech(asked.text)
        async with (
            self._calling(semconv.SPEECH, choice, request, estimate) as (record, deadline),
            aclosing(self._events(choice, speech, deadline)) as events,  # type: ignore[type-var]
        ):
            async for event in events:
                if isinstance(event, SpeechFinish):
                    entry = record.finish(event.model, Amount(usage=event.usage, media=event.media))
                    yield _finished(entry, event.format)
                else:
                    for start in range(0, len(event.data), MAX_PART):
                        yield SpeechPart(data=event.data[start : start + MAX_PART], format=format)

    async def _events(
        self, choice: SelectedModel, speech: SpeechRequest, deadline: Deadline
    ) -> AsyncIterator[SpeechEvent]:
        """Yield the adapter's events up to the finish, each within the time limit."""
        async with aclosing(choice.adapter.speak(speech)) as events:  # type: ignore[type-var]
            while True:
                event: SpeechEvent | None = await self._calls.step(lambda: anext(events, None), deadline)
                if event is None:
                    raise ModelError(
                        ErrorCode.PROVIDER_ERROR, "interrupted", "the audio ended without a finish"
                    )
                yield event
                if not isinstance(event, SpeechAudio):
                    return

    async def _recording(self, asked: TranscribeAudio) -> Audio:
        data = await self._bus.objects(AUDIO_STORE).get(asked.audio)
        if data is None:
            raise Refusal(ErrorCode.ENGINE_UNAVAILABLE, "The recording is no longer there. Send it again.")
        if len(data) > MAX_AUDIO_BYTES:
            raise Refusal(ErrorCode.TOO_LARGE, "The recording is too large.")
        return Audio(media_type=asked.media_type, data=data)

    async def _delete(self, recording: str) -> None:
        try:
            await self._bus.objects(AUDIO_STORE).delete(recording)
        except BusError as error:
            log.warning("the recording %s was not deleted, it expires within an hour: %s", recording, error)

    async def _choose_ears(self, request: Request[TranscribeAudio]) -> SelectedModel:
        """Return the choice for a recording. The adapter decides which of its models has times and translates."""
        asked = request.data
        choice = await self._choose(request, "transcription_model")
        if not choice.adapter.transcribes:
            raise _not_able(choice, "transcribes no audio")
        if asked.translate and not choice.adapter.translates:
            raise _not_able(choice, "translates no audio")
        special = asked.translate or asked.segments
        return SelectedModel(choice.adapter, "") if special and not _names_model(asked, choice) else choice

    async def _choose(self, request: Request[Asked], ability: AbilityModel) -> SelectedModel:
        """Return the adapter and the model for the ability: those that the request names, else the adapter that answers
        in the block with its own model for the ability. A chat model is never asked, and no other adapter.
        """
        asked, block = request.data, request.envelope.block or self._block
        if self._kill_switch.is_engaged:
            raise Refusal(ErrorCode.PANIC, STOPPED_SENTENCE)
        try:
            profile = await self._profile(block)
            choice = self._models.choose(profile.preferred_model(asked.model))
        except (BusError, ModelError) as error:
            log.warning("a request for the %s of block %s has no model: %s", ability, block, error)
            code = error.code if isinstance(error, ModelError) else ErrorCode.ENGINE_UNAVAILABLE
            raise refused(code) from error
        if _names_model(asked, choice):
            return choice
        return SelectedModel(choice.adapter, getattr(choice.adapter, ability))

    @asynccontextmanager
    async def _calling(
        self, operation: str, choice: SelectedModel, request: Request[Asked], estimate: Amount
    ) -> AsyncIterator[tuple[AbilityRecord, Deadline]]:
        """Open the span and the ledger's record of a call, and translate its failure into a refusal."""
        asked, adapter = request.data, choice.adapter
        attributes = {
            semconv.GEN_AI_OPERATION: operation,
            **model_attributes(adapter.name, adapter.vendor, choice.model),
            semconv.PURPOSE: asked.purpose,
        }
        name, failure = f"{operation} {choice.model}".strip(), None
        deadline = Deadline(DEFAULT_TIMEOUT if asked.timeout is None else asked.timeout)
        with (
            self._calls.counted(),
            start_span(tracer, name, kind=trace.SpanKind.CLIENT, attributes=attributes) as span,
        ):
            try:
                async with self._record(operation, choice, request, estimate) as record:
                    yield record, deadline
            except ModelError as error:
                failure = self._refused(error, operation, choice, span)
            except (Refusal, GeneratorExit):
                raise
            except Exception as error:  # the adapter broke its contract
                log.exception("a call for %s failed", operation)
                fault = ModelError(ErrorCode.PROVIDER_ERROR, "bad_response", type(error).__name__)
                failure = self._refused(fault, operation, choice, span)
        if failure is not None:  # raised here, because the span would take it for the fault
            raise failure

    def _record(
        self, operation: str, choice: SelectedModel, request: Request[Asked], estimate: Amount
    ) -> AbilityRecord:
        asked, envelope = request.data, request.envelope
        entry = ability_entry(
            worker=self._worker,
            operation=operation,
            adapter=choice.adapter.name,
            vendor=choice.adapter.vendor,
            requested=choice.model,
            purpose=asked.purpose,
            actor=asked.actor,
            block=envelope.block or self._block,
            conversation=envelope.conversation or "",
            turn=envelope.turn or "",
        )
        return AbilityRecord(self._ledger, self._call_config.prices, entry, estimate)

    def _refused(self, error: ModelError, operation: str, choice: SelectedModel, span: trace.Span) -> Refusal:
        log.warning("a call for %s failed: %s", operation, error)
        span.set_status(trace.StatusCode.ERROR, error.fault)
        span.set_attribute(semconv.ERROR_TYPE, error.fault)
        why = self._call_config.explainer.describe(error, choice.label)
        return Refusal(error.code, f"{FIXED_SENTENCES[error.code]} {why}".strip())


async def _transcribe(asked: TranscribeAudio, audio: Audio, choice: SelectedModel) -> Transcription:
    return await choice.adapter.transcribe(
        TranscriptionRequest(
            audio=audio,
            model=choice.model,
            language=asked.language,
            prompt=asked.prompt,
            translate=asked.translate,
            segments=asked.segments,
        )
    )


def _names_model(asked: EmbedTexts | TranscribeAudio | SpeakText, choice: SelectedModel) -> bool:
    """Report whether the request names a model and not only an adapter."""
    return asked.model is not None and asked.model != choice.adapter.name


def _finished(entry: CostEntry, format: SpeechFormat | None = None) -> AbilityFinished:
    """Return the last reply of a call."""
    trace.get_current_span().set_attributes({semconv.COST: entry.cost or 0, semconv.PURPOSE: entry.purpose})
    return AbilityFinished(
        adapter=entry.adapter,
        model=entry.model or entry.requested,
        purpose=entry.purpose,
        usage=entry.usage,
        media=entry.media,
        cost=entry.cost or 0,
        price=entry.price,
        format=format,
    )


def _speech_format(choice: SelectedModel, wanted: SpeechFormat | None) -> SpeechFormat:
    offered = choice.adapter.speech_formats
    if not offered:
        raise _not_able(choice, "does not speak")
    if wanted is not None and wanted not in offered:
        told = f"The model adapter {choice.adapter.name} speaks {', '.join(offered)} and not {wanted}."
        raise Refusal(BAD_FORMAT, told)
    return wanted or offered[0]


def _not_able(choice: SelectedModel, why: str) -> Refusal:
    hint = "Name a model that can, as adapter/model."
    return Refusal(NOT_ABLE, f"The model adapter {choice.adapter.name} {why}. {hint}")
