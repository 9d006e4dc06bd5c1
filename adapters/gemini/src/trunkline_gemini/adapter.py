"""The adapter: one client of the official SDK, one request for each call. Translation is in the other modules.

The SDK is imported in a thread on first use, because the import takes a good part of a second in which the worker must
not block. Only its transport (addresses, headers, errors) is used and not its typed methods: they convert schemas and
messages, refuse fields that they do not know, and continue an answer with further requests of their own.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from urllib.parse import urlencode

import anyio
import msgspec

from trunkline import ConfigError, Secret
from trunkline.api.model import (
    Ability,
    Embeddings,
    ModelAdapter,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    SpeechAudio,
    SpeechEvent,
    SpeechRequest,
    Transcription,
    TranscriptionRequest,
    Usage,
    model_error,
)
from trunkline_gemini.audio import (
    DEFAULT_SPEECH_MODEL,
    FORMATS,
    SpeechStreamReader,
    read_transcription,
    speech_body,
    transcription_body,
)
from trunkline_gemini.content_request import (
    build_request,
    count_request,
    embedding_request,
    enforces_format,
    resource,
)
from trunkline_gemini.content_stream import ContentStreamReader
from trunkline_gemini.contents import VENDOR
from trunkline_gemini.errors import from_exception
from trunkline_gemini.event_stream import EventSplitter
from trunkline_gemini.settings import PARAMETERS, GeminiSettings

if TYPE_CHECKING:
    import httpx2
    from google.genai._api_client import BaseApiClient

T = TypeVar("T")

LIST_TIMEOUT = 10.0
"""Seconds within which a server must have listed its models or counted tokens."""

PAGE, MAX_PAGES = 1000, 20
"""The number of models that a page of the list may have, and the number of pages that are read."""

DEFAULT_EMBEDDING_MODEL = "gemini-embedding-001"
"""The model of vectors when none is named."""

MAX_EMBEDDINGS = 100
"""The number of texts that the vendor embeds in one request."""

GENERATE, EMBED = "generateContent", "embedContent"

SPECIAL = ("image", "tts", "audio", "live", "robotics", "computer-use", "veo", "lyria")
"""Parts of the names of Gemini models without the abilities of the others."""


class _GeminiListing(msgspec.Struct, rename="camel"):
    name: str
    input_token_limit: int = 0
    output_token_limit: int = 0
    supported_generation_methods: list[str] = []
    thinking: bool = False

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(
            id=self.name.removeprefix("models/"),
            context_window=self.input_token_limit,
            max_output=self.output_token_limit,
            abilities=self._abilities,
        )

    @property
    def _abilities(self) -> frozenset[Ability] | None:
        """Return what the model can do. The vendor lists methods only; what Gemini models read is documented."""
        if GENERATE not in self.supported_generation_methods:
            return frozenset({"embeddings"})
        id = self.name.rpartition("/")[2]
        if not id.startswith("gemini-") or any(part in id for part in SPECIAL):
            return None
        abilities: set[Ability] = {"tools", "images", "documents", "structured"}
        if self.thinking:
            abilities.add("reasoning")
        return frozenset(abilities)


class _GeminiPage(msgspec.Struct, rename="camel"):
    models: list[_GeminiListing] = []
    next_page_token: str = ""


class _GeminiCount(msgspec.Struct, rename="camel"):
    total_tokens: int


class _GeminiVector(msgspec.Struct):
    values: tuple[float, ...]


class _GeminiTokens(msgspec.Struct, frozen=True, rename="camel"):
    prompt_token_count: int = 0


class _GeminiVectors(msgspec.Struct, rename="camel"):
    embeddings: list[_GeminiVector]
    usage_metadata: _GeminiTokens = _GeminiTokens()


class _GeminiClient(NamedTuple):
    """The SDK's client and the HTTP client that it uses."""

    api: "BaseApiClient"
    http: "httpx2.AsyncClient"


class GeminiAdapter(ModelAdapter):
    """Google's Gemini API, or a server with that API (``settings.base_url``)."""

    name = "gemini"
    vendor = VENDOR
    continues = True
    sees = True
    reads = True
    structured = True
    embeds = True
    takes_key = True
    transcribes = True
    translates = True
    speech_formats = FORMATS
    embedding_model = DEFAULT_EMBEDDING_MODEL
    speech_model = DEFAULT_SPEECH_MODEL
    parameters = PARAMETERS

    def __init__(self, settings: GeminiSettings) -> None:
        self.configured = settings.configured
        self.transcription_model = settings.default_model
        self.default_model = settings.default_model
        self._settings = settings
        self._clients: dict[str, _GeminiClient] = {}
        self._opening = anyio.Lock()

    def enforces_format(self, request: ModelRequest) -> bool:
        """Report whether the vendor enforces the format in the answer of this model."""
        return enforces_format(request, self._model(request))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request to the model (see ``ModelAdapter.stream``)."""
        key = self._key(request.key)
        model = self._model(request)
        body = build_request(request, model, self._settings)
        reader = ContentStreamReader(request, model, key)
        async with aclosing(self._events(model, body, key)) as events:
            async for event in events:
                with _readable(key):
                    read = list(reader.feed(event))
                for item in read:
                    yield item
        for item in reader.finish():
            yield item

    async def models(self) -> tuple[ModelInfo, ...]:
        """Return the models that generate content or embed, from all pages of the list."""
        key = self._key()
        found: list[_GeminiListing] = []
        query: dict[str, Any] = {"pageSize": PAGE}
        try:
            with anyio.fail_after(LIST_TIMEOUT):
                for _ in range(MAX_PAGES):
                    page = await self._ask("get", f"models?{urlencode(query)}", {}, _GeminiPage, key)
                    found += page.models
                    if not page.next_page_token:
                        break
                    query["pageToken"] = page.next_page_token
        except TimeoutError:
            raise model_error("timeout", "the server did not list its models in time") from None
        return tuple(
            model.info for model in found if {GENERATE, EMBED} & set(model.supported_generation_methods)
        )

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Return the number of input tokens as the vendor counts them."""
        key = self._key()
        model = self._model(request)
        body = count_request(request, model, self._settings)
        try:
            with anyio.fail_after(LIST_TIMEOUT):
                count = await self._ask("post", f"{resource(model)}:countTokens", body, _GeminiCount, key)
                return count.total_tokens
        except TimeoutError:
            raise model_error("timeout", "the server did not count the tokens in time") from None

    async def embed(
        self, texts: Sequence[str], *, model: str = "", dimensions: int | None = None
    ) -> Embeddings:
        """Return vectors by the vendor's embedding model."""
        key = self._key()
        chosen = model.removeprefix("models/") or DEFAULT_EMBEDDING_MODEL
        path = f"{resource(chosen)}:batchEmbedContents"
        vectors: list[tuple[float, ...]] = []
        tokens = 0
        for start in range(0, len(texts), MAX_EMBEDDINGS):
            body = embedding_request(texts[start : start + MAX_EMBEDDINGS], chosen, dimensions)
            found = await self._ask("post", path, body, _GeminiVectors, key)
            vectors += (one.values for one in found.embeddings)
            tokens += found.usage_metadata.prompt_token_count
        if len(vectors) != len(texts):
            raise model_error("bad_response", f"{len(texts)} texts were embedded as {len(vectors)} vectors")
        return Embeddings(vectors=tuple(vectors), usage=Usage(input_tokens=tokens), model=chosen)

    async def transcribe(self, request: TranscriptionRequest) -> Transcription:
        """Return the text of a recording, which a model of the vendor writes down."""
        key = self._key()
        model = request.model.removeprefix("models/") or self._settings.default_model
        body = transcription_body(request)
        reader = ContentStreamReader(ModelRequest(messages=()), model, key)
        read: list[ModelEvent] = []
        async with aclosing(self._events(model, body, key)) as events:
            async for event in events:
                with _readable(key):
                    read += reader.feed(event)
        read += reader.finish()
        return read_transcription(read, model)

    async def speak(self, request: SpeechRequest) -> AsyncIterator[SpeechEvent]:
        """Yield the audio of a text, as it arrives if it has no head."""
        key = self._key()
        model = request.model.removeprefix("models/") or DEFAULT_SPEECH_MODEL
        format = request.format or FORMATS[0]
        if format not in FORMATS:
            raise model_error("refused", f"the formats of speech are {', '.join(FORMATS)}")
        reader = SpeechStreamReader(model, format, key)
        async with aclosing(self._events(model, speech_body(request, model), key)) as events:
            async for event in events:
                with _readable(key):
                    parts = list(reader.feed(event))
                for data in parts:
                    yield SpeechAudio(data)
        for data in reader.finish():
            yield SpeechAudio(data)
        yield reader.end

    async def aclose(self) -> None:
        """Close the connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            client.api.close()  # the SDK's synchronous client, which is never used
            await client.http.aclose()

    async def _ask(self, method: str, path: str, body: dict[str, Any], kind: type[T], key: str) -> T:
        """Send a request and return the document that answers it. Raise ModelError."""
        client = await self._open(key)
        try:
            answer = await client.api.async_request(method, path, body)
            return msgspec.json.decode(answer.body or "", type=kind)
        except Exception as error:
            raise from_exception(error, began=False, key=key) from None

    async def _events(self, model: str, body: dict[str, Any], key: str) -> AsyncGenerator[str]:
        """Yield the events of one answer as JSON text. Raise only ModelError; close the connection when closed."""
        client = await self._open(key)
        response: httpx2.Response | None = None
        splitter = EventSplitter()
        try:
            path = f"{resource(model)}:streamGenerateContent?alt=sse"
            sent = client.api._build_request("post", path, body)
            answer = await client.api._async_request_once(sent, stream=True)
            response = cast("httpx2.Response", answer.response_stream)
            async with aclosing(response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    for event in splitter.feed(chunk):
                        yield event
            for event in splitter.finish():
                yield event
        except Exception as error:
            raise from_exception(error, began=response is not None, key=key) from None
        finally:
            if response is not None:
                with anyio.CancelScope(shield=True):
                    await response.aclose()

    def _model(self, request: ModelRequest) -> str:
        return request.model.removeprefix("models/") or self._settings.default_model

    def _key(self, chosen: str = "") -> str:
        try:
            return (Secret(env=chosen).reveal() if chosen else self._settings.key()).strip()
        except ConfigError as error:
            raise model_error("authentication", error.sentence) from None

    async def _open(self, key: str) -> _GeminiClient:
        async with self._opening:
            if key not in self._clients:
                try:
                    self._clients[key] = await anyio.to_thread.run_sync(_new_client, self._settings, key)
                except Exception as error:
                    raise model_error(
                        "unavailable",
                        f"no HTTP client could be created for this address: {type(error).__name__}",
                    ) from None
            return self._clients[key]


@contextmanager
def _readable(key: str) -> Iterator[None]:
    """Translate the errors of an event that cannot be read."""
    try:
        yield
    except (msgspec.MsgspecError, ValueError) as error:
        told = f"an event cannot be read: {error}".replace(key, "[key]")
        raise model_error("bad_response", told) from None


def _new_client(settings: GeminiSettings, key: str) -> _GeminiClient:
    """Return a client without retries that follows no redirect: a key goes to the configured address only."""
    import httpx2
    from google.genai import types
    from google.genai._api_client import BaseApiClient

    timeout = httpx2.Timeout(None, connect=settings.connect_timeout)

    async def limit_connecting(request: httpx2.Request) -> None:
        # The SDK sets no timeout at all on a streamed request, not even that of its HTTP client.
        request.extensions = {**request.extensions, "timeout": timeout.as_dict()}

    tls = httpx2.create_ssl_context()
    # Not the SDK's own: one that is left to the garbage collector closes itself in whatever loop runs by then.
    http = httpx2.AsyncClient(
        verify=tls, timeout=timeout, follow_redirects=False, event_hooks={"request": [limit_connecting]}
    )
    options = types.HttpOptions(
        base_url=settings.url,
        api_version=settings.api_version,
        httpx_async_client=http,
        # For clients of the SDK that are not used. It would read the system's certificates again for each of them.
        client_args={"verify": tls},
        async_client_args={"ssl": tls},
    )
    return _GeminiClient(BaseApiClient(vertexai=False, api_key=key, http_options=options), http)
