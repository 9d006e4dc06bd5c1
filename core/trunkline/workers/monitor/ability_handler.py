"""Answers requests for vectors, transcripts and speech over the bus (``model.embed``, ``model.transcribe``,
``model.speak``).

They have the adapters, prices, limits, ledger and spans of a model call, and pass the middleware around requests, such
as a budget and redaction (``AbilityCall``). They do not pass the middleware around calls: its contract is messages in,
text and tool calls out, and what it does (validating answers, falling back to another chat model) has no meaning for
audio and vectors.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Literal, TypeVar

import anyio
from opentelemetry import trace

from trunkline.contracts.costs.messages import CostEntry
from trunkline.contracts.models.abilities import (
    EMBED,
    SPEAK,
    TRANSCRIBE,
    Audio,
    Purpose,
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
from trunkline.contracts.models.adapter import ModelRequest, Operation
from trunkline.contracts.models.subjects import AUDIO_STORE
from trunkline.contracts.models.vectors import pack_vectors
from trunkline.errors import FIXED_SENTENCES, ErrorCode, ModelError
from trunkline.home.kill_switch import STOPPED_SENTENCE, KillSwitch
from trunkline.runtime.ability_call import AbilityCall, Send, text_messages
from trunkline.runtime.ability_ledger import (
    AbilityLedger,
    Amount,
    estimate_recording,
    estimate_speech,
    estimate_texts,
)
from trunkline.telemetry import semconv
from trunkline.workers.monitor.block_profile import BlockProfile
from trunkline.workers.monitor.live_calls import Deadline, LiveCalls, refused
from trunkline.workers.monitor.model_call import ModelCallConfig, model_attributes
from trunkline.workers.monitor.model_registry import ModelRegistry, SelectedModel
from trunkline_bus import Bus, BusError, Refusal, Request, new_id, start_span

log = logging.getLogger(__name__)
tracer = trace.get_tracer("trunkline.monitor")

DEFAULT_TIMEOUT = 600.0
"""Seconds for a call without a time limit of its own. A vendor takes minutes for the longest recordings."""

MAX_PART = 64 * 1024
"""The largest part of audio in one reply, in bytes."""

T = TypeVar("T")

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
        ledger: AbilityLedger,
    ) -> None:
        self._bus = bus
        self._ledger = ledger
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
        choice = _with_default(await self._choose(request, EMBED), "embedding_model")
        if not choice.adapter.embeds:
            raise _not_able(choice, "makes no vectors")
        deadline = _deadline(asked)

        async def send(call: AbilityCall, texts: tuple[str, ...]) -> AsyncGenerator[EmbedReply]:
            found = await self._calls.step(
                lambda: choice.adapter.embed(texts, model=choice.model, dimensions=asked.dimensions),
                deadline,
            )
            call.finish(found.model, Amount(usage=found.usage))
            for count, data in pack_vectors(found.vectors):
                yield VectorPart(count=count, data=data)

        call = self._call(semconv.EMBEDDINGS, choice, request, asked.texts, estimate_texts(asked.texts))
        async with aclosing(self._run(call, send)) as replies:
            async for reply in replies:
                yield reply
        yield _finished(call.entry)

    async def transcribe(self, request: Request[TranscribeAudio]) -> AsyncIterator[TranscribeReply]:
        """Yield the text, then the end. Raises Refusal with a code; see ``ModelAbilities``."""
        asked = request.data
        audio, deadline = await self._take_recording(asked), _deadline(asked)
        choice = await self._choose_ears(request)

        async def send(call: AbilityCall, texts: tuple[str, ...]) -> AsyncGenerator[TranscribeReply]:
            said = await self._calls.step(lambda: _transcribe(asked, audio, choice, *texts), deadline)
            call.finish(said.model, Amount(usage=said.usage, media=said.media))
            yield AudioTranscribed(
                text=said.text, language=said.language, seconds=said.seconds, segments=said.segments
            )

        estimate = estimate_recording(len(audio.data))
        call = self._call(semconv.TRANSCRIPTION, choice, request, (asked.prompt,), estimate)
        async with aclosing(self._run(call, send)) as replies:
            async for reply in replies:
                yield reply
        yield _finished(call.entry)

    async def speak(self, request: Request[SpeakText]) -> AsyncIterator[SpeakReply]:
        """Yield the audio in parts as it arrives, then the end. Raises Refusal with a code; see ``ModelAbilities``."""
        asked = request.data
        choice = _with_default(await self._choose(request, SPEAK), "speech_model")
        format, deadline = _speech_format(choice, asked.format), _deadline(asked)

        async def send(call: AbilityCall, texts: tuple[str, ...]) -> AsyncGenerator[SpeakReply]:
            speech = _speech_request(asked, choice, format, *texts)
            async with aclosing(self._events(choice, speech, deadline)) as events:
                async for event in events:
                    if isinstance(event, SpeechFinish):
                        call.finish(event.model, Amount(usage=event.usage, media=event.media))
                    else:
                        for start in range(0, len(event.data), MAX_PART):
                            yield SpeechPart(data=event.data[start : start + MAX_PART], format=format)

        texts = (asked.text, asked.instructions)
        call = self._call(semconv.SPEECH, choice, request, texts, estimate_speech(asked.text))
        async with aclosing(self._run(call, send)) as replies:
            async for reply in replies:
                yield reply
        yield _finished(call.entry, format)

    async def _events(
        self, choice: SelectedModel, speech: SpeechRequest, deadline: Deadline
    ) -> AsyncGenerator[SpeechEvent]:
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

    async def _take_recording(self, asked: TranscribeAudio) -> Audio:
        """Return the recording, and delete it from the bus. If this monitor dies, the caller sends it again."""
        objects = self._bus.objects(AUDIO_STORE)
        data = await objects.get(asked.audio)
        with anyio.CancelScope(shield=True):
            try:
                await objects.delete(asked.audio)
            except BusError as error:
                log.warning("recording %s was not deleted; it expires within an hour: %s", asked.audio, error)
        if data is None:
            raise Refusal(ErrorCode.ENGINE_UNAVAILABLE, "The recording is no longer there. Send it again.")
        if len(data) > MAX_AUDIO_BYTES:
            raise Refusal(ErrorCode.TOO_LARGE, "The recording is too large.")
        return Audio(media_type=asked.media_type, data=data)

    async def _choose_ears(self, request: Request[TranscribeAudio]) -> SelectedModel:
        """Return the choice for a recording. The adapter decides which of its models has times and translates."""
        asked = request.data
        choice = await self._choose(request, TRANSCRIBE)
        if not choice.adapter.transcribes:
            raise _not_able(choice, "transcribes no audio")
        if asked.translate and not choice.adapter.translates:
            raise _not_able(choice, "translates no audio")
        return choice if asked.translate or asked.segments else _with_default(choice, "transcription_model")

    async def _choose(self, request: Request[Asked], purpose: Purpose) -> SelectedModel:
        """Return the adapter and the model that the request names, else those of the settings for the purpose, else the
        adapter that answers in the block. The model is "" if only the adapter is named: a chat model is never asked.
        """
        asked, block = request.data, request.envelope.block or self._block
        if self._kill_switch.is_engaged:
            raise Refusal(ErrorCode.PANIC, STOPPED_SENTENCE)
        try:
            profile = await self._profile(block)
            named = profile.preferred_model(asked.model, purpose)
            choice = self._models.choose(named or profile.preferred_model(None))
        except (BusError, ModelError) as error:
            log.warning("a request for the purpose %s of block %s has no model: %s", purpose, block, error)
            code = error.code if isinstance(error, ModelError) else ErrorCode.ENGINE_UNAVAILABLE
            raise refused(code) from error
        return choice if named not in (None, choice.adapter.name) else SelectedModel(choice.adapter, "")

    def _call(
        self,
        operation: Operation,
        choice: SelectedModel,
        request: Request[Asked],
        texts: tuple[str, ...],
        estimate: Amount,
    ) -> AbilityCall:
        """Return the call of a request. ``texts`` are all texts that the vendor is to receive."""
        asked, envelope = request.data, request.envelope
        described = ModelRequest(
            id=new_id("request"),
            messages=text_messages(texts),
            model=choice.model,
            max_tokens=max(1, estimate.usage.output_tokens),
            block=envelope.block or self._block,
            conversation=envelope.conversation or "",
            turn=envelope.turn or "",
            actor=asked.actor,
            purpose=asked.purpose,
            operation=operation,
            audio_tokens=estimate.usage.input_tokens if operation == semconv.TRANSCRIPTION else 0,
            media=estimate.media,
            adapter=choice.adapter.name,
        )
        return AbilityCall(choice.adapter.vendor, described, estimate, self._ledger)

    async def _run(self, call: AbilityCall, send: Send[T]) -> AsyncGenerator[T]:
        """Yield the replies of a call within its span, and translate its failure into a refusal."""
        failure: Refusal | None = None
        name = f"{call.request.operation} {call.request.model}".strip()
        with (
            self._calls.counted(),
            start_span(tracer, name, kind=trace.SpanKind.CLIENT, attributes=_attributes(call)) as span,
        ):
            try:
                async with aclosing(call.replies(self._models.around_requests, send)) as replies:
                    async for reply in replies:
                        yield reply
            except ModelError as error:
                failure = self._refused(error, call, span)
            except BusError as error:
                log.warning("a call for %s was not sent: %s", call.request.operation, error)
                failure = refused(ErrorCode.ENGINE_UNAVAILABLE)
            except Refusal:
                raise
            except Exception as error:  # the adapter broke its contract
                log.exception("a call for %s failed", call.request.operation)
                fault = ModelError(ErrorCode.PROVIDER_ERROR, "bad_response", type(error).__name__)
                failure = self._refused(fault, call, span)
        if failure is not None:  # raised here, because the span would take it for the fault
            raise failure

    def _refused(self, error: ModelError, call: AbilityCall, span: trace.Span) -> Refusal:
        log.warning("a call for %s failed: %s", call.request.operation, error)
        span.set_status(trace.StatusCode.ERROR, error.fault)
        span.set_attribute(semconv.ERROR_TYPE, error.fault)
        if error.fault == "over_budget":
            return Refusal(error.code, error.detail)
        why = self._call_config.explainer.describe(error, call.label)
        return Refusal(error.code, f"{FIXED_SENTENCES[error.code]} {why}".strip())


def _attributes(call: AbilityCall) -> dict[str, str]:
    """Return the attributes of the call's span."""
    request = call.request
    model = model_attributes(request.adapter, call.vendor, request.model)
    return {semconv.GEN_AI_OPERATION: request.operation, **model, semconv.PURPOSE: request.purpose}


async def _transcribe(
    asked: TranscribeAudio, audio: Audio, choice: SelectedModel, prompt: str
) -> Transcription:
    return await choice.adapter.transcribe(
        TranscriptionRequest(
            audio=audio,
            model=choice.model,
            language=asked.language,
            prompt=prompt,
            translate=asked.translate,
            segments=asked.segments,
        )
    )


def _speech_request(
    asked: SpeakText, choice: SelectedModel, format: SpeechFormat, text: str, instructions: str
) -> SpeechRequest:
    return SpeechRequest(
        text=text,
        model=choice.model,
        voice=asked.voice,
        format=format,
        instructions=instructions,
        speed=asked.speed,
    )


def _deadline(asked: EmbedTexts | TranscribeAudio | SpeakText) -> Deadline:
    return Deadline(DEFAULT_TIMEOUT if asked.timeout is None else asked.timeout)


def _with_default(choice: SelectedModel, ability: AbilityModel) -> SelectedModel:
    """Return the choice with the adapter's own model for the ability, if it names none."""
    return choice if choice.model else SelectedModel(choice.adapter, getattr(choice.adapter, ability))


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
