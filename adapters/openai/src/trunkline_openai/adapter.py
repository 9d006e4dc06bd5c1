"""The adapter: one client of the official SDK, one request a call. What it sends and reads is in the protocols.

The SDK is imported in a thread, on first use: that takes a good part of a second, in which the worker must live on.
Its typed resources are not used, only its transport (address, headers, errors, event stream): servers that speak the
protocol nearly right are the rule, and the protocols read what comes by their own small types. So a body goes in as
bytes and events come out as text, which also spares each of them a detour through the SDK's models.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import msgspec

from trunkline import ConfigError, Secret
from trunkline.api.model import (
    Embeddings,
    ModelAdapter,
    ModelError,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    SpeechEvent,
    SpeechRequest,
    Transcription,
    TranscriptionRequest,
    Usage,
    model_error,
    with_cure,
)
from trunkline_openai.audio import (
    AudioText,
    SpeechReader,
    check_audio_type,
    file_of,
    read_transcription,
    sends_events,
    speech_body,
    speech_format,
    speech_model,
    transcription_fields,
    transcription_model,
)
from trunkline_openai.chat_completions import ChatCompletions
from trunkline_openai.constraints import is_enforceable
from trunkline_openai.errors import from_exception
from trunkline_openai.listing import listed_models
from trunkline_openai.protocol import ApiProtocol
from trunkline_openai.responses import Responses, counted_body
from trunkline_openai.settings import DEFAULT_MODEL, OpenAISettings
from trunkline_openai.vendors import OPENAI

if TYPE_CHECKING:
    import openai

T = TypeVar("T")

PROTOCOLS: dict[str, type[ApiProtocol]] = {"chat": ChatCompletions, "responses": Responses}
REST_SECONDS = 0.1
"""Seconds to wait for the end of a stream after its last event. A connection can be reused only after its end."""

LIST_TIMEOUT = 10.0
"""Seconds within which a server must have listed its models."""

MAX_TEXTS, MAX_CHARS = 256, 300_000
"""The largest number of texts, and of characters together, in one request for vectors. OpenAI takes 300 000 tokens."""

EMBEDS = "embed"
"""A part of the names of models that make vectors."""

NO_ANSWERS = ("embed", "rerank", "whisper", "tts", "moderation")
"""Parts of the names of models that cannot hold a conversation."""


class _Embedding(msgspec.Struct):
    index: int
    embedding: tuple[float, ...]


class _EmbeddingUsage(msgspec.Struct):
    prompt_tokens: int | None = None


class _Embeddings(msgspec.Struct):
    data: list[_Embedding]
    usage: _EmbeddingUsage | None = None
    model: str | None = None


class _InputTokens(msgspec.Struct):
    input_tokens: int


class OpenAIAdapter(ModelAdapter):
    """OpenAI, or a server that speaks its protocol: a vendor's own section, or ``settings.base_url``."""

    sees = True
    takes_key = True

    def __init__(self, settings: OpenAISettings) -> None:
        server = settings.server
        self.name = settings.vendor.name
        self.vendor = settings.vendor_name
        self.continues = settings.continue_final_message
        self.structured = server.structured if settings.structured is None else settings.structured
        self.reads = server.reads if settings.reads is None else settings.reads
        self.embeds = server.embeds
        self.embedding_model = server.embedding_model
        self.transcribes = server.transcribes
        self.transcription_model = server.transcription_model
        self.speech_model = server.speech_model
        self.translates = bool(server.whisper_model)
        self.speech_formats = server.speech_formats if server.speaks else ()
        self.parameters = settings.parameter_table
        self.configured = settings.vendor is OPENAI or settings.given
        self.default_model = settings.model or (DEFAULT_MODEL if settings.server is OPENAI else "")
        self._settings = settings
        self._protocol = PROTOCOLS[settings.protocol]
        self._client: openai.AsyncOpenAI | None = None
        self._texts: type[openai.AsyncStream[str]] | None = None
        self._opening = anyio.Lock()
        self._first_model = ""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model (see ``ModelAdapter.stream``)."""
        key = self._key(request.key)
        model = request.model or await self._default_model()
        body = {**self._protocol.body(request, model, self._settings), **self._settings.extra_body}
        reader = self._protocol.reader(request, model, self._settings, key)
        async with aclosing(self._events(self._protocol.path, body, key)) as events:
            async for event in events:
                try:
                    read = list(reader.feed(event))
                except (msgspec.ValidationError, ValueError) as error:
                    raise model_error(
                        "bad_response", f"an event cannot be read: {error}".replace(key, "[key]")
                    ) from None
                for item in read:
                    yield item
        for item in reader.finish():
            yield item

    def enforces_format(self, request: ModelRequest) -> bool:
        """Report whether the server enforces the format (see ``ModelAdapter.enforces_format``)."""
        model = request.model or self._settings.known_model
        return self.structured and is_enforceable(request, model)

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models that the server lists."""
        key = self._key()
        client = await self._open(key)
        try:
            with anyio.fail_after(LIST_TIMEOUT):
                return listed_models(await client.get("/models", cast_to=object))
        except TimeoutError:
            raise model_error("timeout", "the server did not list its models in time") from None
        except Exception as error:
            raise self._failure(error, began=False, key=key) from None

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """The number of input tokens as OpenAI counts them. Other servers have no such call."""
        if self._settings.server is not OPENAI:
            return None
        body = Responses.body(request, request.model or self._settings.known_model, self._settings)
        counted = await self._post("/responses/input_tokens", counted_body(body), _InputTokens)
        return counted.input_tokens

    async def embed(
        self, texts: Sequence[str], *, model: str = "", dimensions: int | None = None
    ) -> Embeddings:
        """Vectors by the server's embedding model."""
        chosen = model or self._settings.server.embedding_model or await self._embedding_model()
        size = self._settings.embedding_dimensions if dimensions is None else dimensions
        fields = {"model": chosen, **({"dimensions": size} if size is not None else {})}
        vectors: list[tuple[float, ...]] = []
        tokens, name = 0, chosen
        for batch in _batches(texts):
            answer = await self._post("/embeddings", {**fields, "input": batch}, _Embeddings)
            found = sorted(answer.data, key=lambda one: one.index)
            if len(found) != len(batch):
                raise model_error("bad_response", f"{len(batch)} texts were embedded as {len(found)} vectors")
            vectors += (one.embedding for one in found)
            tokens += (answer.usage or _EmbeddingUsage()).prompt_tokens or 0
            name = answer.model or name
        return Embeddings(vectors=tuple(vectors), usage=Usage(input_tokens=tokens), model=name)

    async def transcribe(self, request: TranscriptionRequest) -> Transcription:
        """The text of a recording, by ``/audio/transcriptions`` or ``/audio/translations``."""
        vendor = self._settings.server
        if not vendor.transcribes or (request.translate and not vendor.whisper_model):
            raise model_error("refused", f"{vendor.title} has no such transcripts")
        model, file = transcription_model(request, vendor), file_of(request)
        path = "/audio/translations" if request.translate else "/audio/transcriptions"
        fields = transcription_fields(request, model, vendor)
        key = self._key()
        client = await self._open(key)
        try:
            answer = await client.post(
                path,
                cast_to=object,
                body=fields,
                files={"file": file},
                options={"headers": {"Content-Type": "multipart/form-data"}},
            )
            return read_transcription(msgspec.convert(answer, AudioText), model)
        except Exception as error:
            raise self._failure(error, began=False, key=key) from None

    async def speak(self, request: SpeechRequest) -> AsyncIterator[SpeechEvent]:
        """The audio of a text, by ``/audio/speech``."""
        vendor = self._settings.server
        if not vendor.speaks:
            raise model_error("refused", f"{vendor.title} does not speak")
        model, format = speech_model(request, vendor), speech_format(request, vendor)
        body = speech_body(request, model, format, vendor)
        key, as_events = self._key(), sends_events(model, vendor)
        reader = SpeechReader(request, model, format)
        read = self._speech_events if as_events else self._speech_bytes
        async with aclosing(read(body, reader, key)) as parts:
            async for part in parts:
                yield part
        yield reader.finish()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _events(self, path: str, body: dict[str, Any], key: str) -> AsyncGenerator[str]:
        """The events of one answer, as JSON text. Closes the connection when it is closed; raises ModelError only.

        Iterates the SDK's generator itself: one that the stream holds would hold the stream, and what is broken off
        would be left to the garbage collector, which may run in any thread.
        """
        client = await self._open(key)
        assert self._texts is not None  # opened with the client
        stream: openai.AsyncStream[str] | None = None
        try:
            content = msgspec.json.encode(body)
            stream = await client.post(
                path, cast_to=str, content=content, stream=True, stream_cls=self._texts
            )
            async with aclosing(cast("AsyncGenerator[str]", stream.__stream__())) as texts:
                async for text in texts:
                    yield text
        except Exception as error:
            raise self._failure(error, began=stream is not None, key=key) from None
        finally:
            if stream is not None:
                with anyio.CancelScope(shield=True):
                    await stream.close()

    async def _speech_events(
        self, body: dict[str, Any], reader: SpeechReader, key: str
    ) -> AsyncGenerator[SpeechEvent]:
        async with aclosing(self._events("/audio/speech", {**body, "stream_format": "sse"}, key)) as events:
            async for event in events:
                try:
                    part = reader.feed(event)
                except (msgspec.MsgspecError, ValueError) as error:
                    raise self._failure(error, began=True, key=key) from None
                if part is not None:
                    yield part

    async def _speech_bytes(
        self, body: dict[str, Any], reader: SpeechReader, key: str
    ) -> AsyncGenerator[SpeechEvent]:
        """The audio as the body of the answer. The SDK's own method is the only one that streams bytes."""
        client = await self._open(key)
        began = False
        try:
            speech = client.audio.speech.with_streaming_response
            async with speech.create(**body) as response:
                began = True
                check_audio_type(response.headers.get("content-type", ""))
                async for data in response.iter_bytes():
                    yield reader.take(data)
        except Exception as error:
            raise self._failure(error, began=began, key=key) from None

    async def _post(self, path: str, body: dict[str, Any], kind: type[T]) -> T:
        """The answer of a request that does not stream. Raises ModelError only."""
        key = self._key()
        client = await self._open(key)
        try:
            return msgspec.convert(
                await client.post(path, cast_to=object, content=msgspec.json.encode(body)), kind
            )
        except Exception as error:
            raise self._failure(error, began=False, key=key) from None

    def _failure(self, error: Exception, *, began: bool, key: str) -> ModelError:
        return with_cure(from_exception(error, began=began, key=key), self._settings.place)

    def _key(self, chosen: str = "") -> str:
        try:
            return Secret(env=chosen).reveal() if chosen else self._settings.key()
        except ConfigError as error:
            raise model_error("authentication", error.sentence) from None

    async def _open(self, key: str) -> "openai.AsyncOpenAI":
        async with self._opening:
            if self._client is None:
                try:
                    self._client = await anyio.to_thread.run_sync(_new_client, self._settings, key)
                    self._texts = _stream_type()
                except Exception as error:
                    raise model_error(
                        "unavailable",
                        f"no HTTP client could be created for this address: {type(error).__name__}",
                    ) from None
            return self._client if self._client.api_key == key else self._client.with_options(api_key=key)

    async def _default_model(self) -> str:
        if self.default_model:
            return self.default_model
        if not self._first_model:
            self._first_model = _first([model.id for model in await self.models()], self._settings.place)
        return self._first_model

    async def _embedding_model(self) -> str:
        listed = [model.id for model in await self.models()]
        for name in listed:
            if EMBEDS in name.lower():
                return name
        return _first(listed, self._settings.place)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in as many requests as a vendor's limits need."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == MAX_TEXTS or size + len(text) > MAX_CHARS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _first(ids: Sequence[str], place: str) -> str:
    """The first model that can hold a conversation, else the first."""
    able = [name for name in ids if not any(part in name.lower() for part in NO_ANSWERS)]
    for name in (*able, *ids):
        return name
    raise model_error("refused", f"the server lists no model; set model in [{place}]")


def _stream_type() -> "type[openai.AsyncStream[str]]":
    """The SDK's stream of events, without its reading of what is in them."""
    import openai

    class Texts(openai.AsyncStream[str]):
        async def __stream__(self) -> AsyncIterator[str]:
            events = self._iter_events()
            async for event in events:
                if event.data.startswith("[DONE]"):
                    break
                yield event.data
            with suppress(openai.OpenAIError), anyio.move_on_after(REST_SECONDS):
                async for _ in events:
                    pass

    return Texts


def _new_client(settings: OpenAISettings, key: str) -> "openai.AsyncOpenAI":
    """A client without retries that follows no redirect: a key goes to the configured address and nowhere else."""
    import httpx2
    import openai

    # What the environment says of organisations concerns OpenAI only.
    elsewhere = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
    timeout = httpx2.Timeout(None, connect=settings.connect_timeout)
    # Not the SDK's own: one that is left to the garbage collector closes itself in whatever loop runs by then.
    http = httpx2.AsyncClient(
        timeout=timeout, limits=openai.DEFAULT_CONNECTION_LIMITS, follow_redirects=False
    )
    return openai.AsyncOpenAI(
        api_key=key,
        base_url=settings.url,
        max_retries=0,
        timeout=timeout,
        default_headers={} if settings.server is OPENAI else elsewhere,  # type: ignore[arg-type]
        http_client=http,
    )
