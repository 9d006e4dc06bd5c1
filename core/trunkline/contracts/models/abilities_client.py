"""A client for the abilities of models besides answers, for channels, tools and background work."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import anyio
import msgspec

from trunkline.contracts.models.abilities import (
    Audio,
    Embeddings,
    SpeechAudio,
    SpeechEvent,
    SpeechFinish,
    SpeechRequest,
    Transcription,
    TranscriptionRequest,
)
from trunkline.contracts.models.ability_messages import (
    MAX_AUDIO_BYTES,
    MAX_SPEECH_CHARACTERS,
    MAX_TEXTS,
    AbilityFinished,
    AudioTranscribed,
    EmbedTexts,
    SpeakText,
    SpeechPart,
    TranscribeAudio,
    VectorPart,
)
from trunkline.contracts.models.subjects import AUDIO_STORE, EMBED_TEXTS, SPEAK_TEXT, TRANSCRIBE_AUDIO
from trunkline.contracts.models.vectors import unpack_vectors
from trunkline.errors import CompletionError, ErrorCode
from trunkline_bus import Bus, BusError, CallTimeout, Endpoint, NoResponders, RemoteFault, Scope, new_id

Req = TypeVar("Req")
Rep = TypeVar("Rep")

IDLE_TIMEOUT = 5.0
"""Seconds without a message after which the monitor that was called counts as dead."""

TRIES = 3
PAUSE = 0.5
"""TRIES is the number of attempts if no monitor answers or the monitor dies; PAUSE is the seconds between them."""

PIECE = 128 * 1024
"""The largest piece of an object in bytes."""


class ModelAbilities(Protocol):
    """The abilities of this installation's models besides answers, on behalf of one block.

    ``model`` of a request is ``adapter/model``, an adapter, or a model of the block's adapter; "" selects that of
    the settings for the purpose, else the adapter that answers in the block with its default model for the ability. No
    other adapter is asked instead.

    Guarantees: nothing is stored. A recording is deleted from the bus when the request has ended, at the latest after
    an hour. Requests may run concurrently.

    Not guaranteed: that the model is called only once: if a monitor dies, another one calls the model again. A call
    that fails or is cancelled may cost money.

    Errors: every method raises CompletionError with a code and a text for people: ``not_supported`` if the chosen model
    has not the ability, ``unsupported_format`` if it does not speak in the format, ``timeout``, ``provider_error``,
    ``engine_unavailable``, ``panic``, ``too_large``, ``invalid_request``.
    """

    async def embed(
        self, texts: Sequence[str], *, model: str = "", dimensions: int | None = None
    ) -> Embeddings:
        """Return the vectors of at most 2048 texts, in their order. Raises CompletionError."""
        ...

    async def transcribe(self, request: TranscriptionRequest) -> Transcription:
        """Return the text of a recording of at most 25 MB. Raises CompletionError."""
        ...

    def speak(self, request: SpeechRequest) -> AsyncIterator[SpeechEvent]:
        """Yield the audio of a text of at most 4096 characters as it arrives, then one ``SpeechFinish``. Closing the
        iterator ends the call at the vendor too. Raises CompletionError.
        """
        ...


class NoAbilities:
    """No model is available: on other hosts, in isolated tools, and in tests without a model.

    Guarantees: every method raises, and nothing is sent.

    Not guaranteed: that this process has no other way to a model.
    """

    async def embed(
        self, texts: Sequence[str], *, model: str = "", dimensions: int | None = None
    ) -> Embeddings:
        """Refuse. Raises CompletionError ``engine_unavailable`` in every case."""
        raise _none_here()

    async def transcribe(self, request: TranscriptionRequest) -> Transcription:
        """Refuse. Raises CompletionError ``engine_unavailable`` in every case."""
        raise _none_here()

    def speak(self, request: SpeechRequest) -> AsyncIterator[SpeechEvent]:
        """Refuse. Raises CompletionError ``engine_unavailable`` in every case."""
        raise _none_here()


class BlockAbilities:
    """The ``ModelAbilities`` of one block, over the bus. ``actor`` is the caller; ``conversation`` and ``turn`` are
    those of the requests, if any. ``timeout`` limits each call at the vendor, in seconds.

    Guarantees: those of ``ModelAbilities``. Another monitor is asked if the first one ends, except after the first part
    of speech.

    Not guaranteed: that the model is called only once, as for ``ModelAbilities``.
    """

    def __init__(
        self,
        bus: Bus,
        block: str | None,
        *,
        actor: str = "",
        conversation: str | None = None,
        turn: str | None = None,
        timeout: float | None = None,
    ) -> None:
        self._bus = bus
        self._actor = actor
        self._timeout = timeout
        self._scope = Scope(block=block, conversation=conversation, turn=turn)

    async def embed(
        self, texts: Sequence[str], *, model: str = "", dimensions: int | None = None
    ) -> Embeddings:
        """Return the vectors of texts; see ``ModelAbilities``. Raises CompletionError."""
        if not texts:
            return Embeddings(vectors=())
        if len(texts) > MAX_TEXTS:
            raise CompletionError(ErrorCode.TOO_LARGE, f"At most {MAX_TEXTS} texts are embedded at once.")
        request = EmbedTexts(texts=tuple(texts), dimensions=dimensions, **self._common(model))
        for attempt in range(TRIES):
            async with self._attempt(attempt):
                vectors: list[tuple[float, ...]] = []
                async for reply in self._replies(EMBED_TEXTS, request):
                    if isinstance(reply, VectorPart):
                        vectors += unpack_vectors(reply.data, reply.count)
                    elif isinstance(reply, AbilityFinished):
                        return Embeddings(vectors=tuple(vectors), usage=reply.usage, model=reply.model)
        raise _unavailable()

    async def transcribe(self, request: TranscriptionRequest) -> Transcription:
        """Return the text of a recording; see ``ModelAbilities``. Raises CompletionError."""
        if len(request.audio.data) > MAX_AUDIO_BYTES:
            megabytes = MAX_AUDIO_BYTES // 1024 // 1024
            raise CompletionError(ErrorCode.TOO_LARGE, f"A recording has at most {megabytes} MB.")
        return await self.transcribe_file(request, lambda: _pieces(request.audio))

    async def transcribe_file(
        self, request: TranscriptionRequest, pieces: Callable[[], AsyncIterator[bytes]]
    ) -> Transcription:
        """Return the text of a recording that is not in memory. ``pieces`` yields it from its beginning, at most 128
        KiB at a time, once for each attempt; ``request.audio`` has only its type. Raises CompletionError.
        """
        for attempt in range(TRIES):
            async with self._attempt(attempt):
                return await self._transcribe_once(request, pieces())
        raise _unavailable()

    async def speak(self, request: SpeechRequest) -> AsyncIterator[SpeechEvent]:
        """Yield the audio of a text; see ``ModelAbilities``. Raises CompletionError."""
        if len(request.text) > MAX_SPEECH_CHARACTERS:
            raise CompletionError(
                ErrorCode.TOO_LARGE, f"A text to speak has at most {MAX_SPEECH_CHARACTERS} characters."
            )
        asked = SpeakText(
            text=request.text,
            voice=request.voice,
            format=request.format,
            instructions=request.instructions,
            speed=request.speed,
            **self._common(request.model),
        )
        begun = False
        for attempt in range(TRIES):
            async with self._attempt(attempt, last=begun):
                async for reply in self._replies(SPEAK_TEXT, asked):
                    if isinstance(reply, SpeechPart):
                        begun = True
                        yield SpeechAudio(reply.data)
                    elif isinstance(reply, AbilityFinished):
                        yield _speech_finish(reply)
                        return
            if begun:
                break
        raise _unavailable()

    async def _transcribe_once(
        self, request: TranscriptionRequest, pieces: AsyncIterator[bytes]
    ) -> Transcription:
        """Put the recording into its store and ask a monitor, which deletes the recording."""
        name = new_id("audio")
        await self._bus.objects(AUDIO_STORE).put_pieces(name, pieces)
        asked = TranscribeAudio(
            audio=name,
            media_type=request.audio.media_type,
            language=request.language,
            prompt=request.prompt,
            translate=request.translate,
            segments=request.segments,
            **self._common(request.model),
        )
        said: AudioTranscribed | None = None
        async for reply in self._replies(TRANSCRIBE_AUDIO, asked):
            if isinstance(reply, AudioTranscribed):
                said = reply
            elif isinstance(reply, AbilityFinished) and said is not None:
                return Transcription(
                    text=said.text,
                    language=said.language,
                    seconds=said.seconds,
                    segments=said.segments,
                    usage=reply.usage,
                    media=reply.media,
                    model=reply.model,
                )
        raise _NotAnswered

    def _common(self, model: str) -> dict[str, Any]:
        return {"model": model or None, "actor": self._actor, "timeout": self._timeout}

    async def _replies(self, endpoint: Endpoint[Req, Rep], request: Req) -> AsyncIterator[Rep]:
        request = _checked(request)
        async with self._bus.call_streaming(
            endpoint, request, scope=self._scope, idle_timeout=IDLE_TIMEOUT
        ) as answers:
            async for answer in answers:
                yield answer

    @asynccontextmanager
    async def _attempt(self, number: int, *, last: bool = False) -> AsyncIterator[None]:
        """Translate failures of the bus. Return after a failure that another monitor may not have, unless it is the
        last attempt.
        """
        try:
            yield
        except RemoteFault as fault:
            if fault.code != ErrorCode.ENGINE_UNAVAILABLE:
                raise CompletionError(fault.code, fault.message) from fault
            await self._wait_or_fail(number, fault, last=last)
        except (NoResponders, CallTimeout, _NotAnswered) as error:
            await self._wait_or_fail(number, error, last=last)
        except BusError as error:
            raise _unavailable() from error

    async def _wait_or_fail(self, number: int, error: Exception, *, last: bool) -> None:
        if last or number == TRIES - 1:
            raise _unavailable() from error
        await anyio.sleep(PAUSE)


class _NotAnswered(Exception):
    """The monitor ended its replies too early; another one may answer."""


async def _pieces(audio: Audio) -> AsyncIterator[bytes]:
    for start in range(0, len(audio.data), PIECE):
        yield audio.data[start : start + PIECE]


def _speech_finish(reply: AbilityFinished) -> SpeechFinish:
    assert reply.format is not None  # a monitor names the format of every audio
    return SpeechFinish(format=reply.format, usage=reply.usage, media=reply.media, model=reply.model)


def _checked(request: Req) -> Req:
    """Return the request if a monitor can decode it. Raise CompletionError otherwise."""
    try:
        return msgspec.convert(msgspec.to_builtins(request), type(request))
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise CompletionError(ErrorCode.INVALID_REQUEST, f"The model cannot be asked so: {error}.") from error


def _none_here() -> CompletionError:
    return CompletionError(ErrorCode.ENGINE_UNAVAILABLE, "No model can be asked from here.")


def _unavailable() -> CompletionError:
    return CompletionError(ErrorCode.ENGINE_UNAVAILABLE, "No model can be asked right now. Try again.")
