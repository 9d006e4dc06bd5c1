"""The adapter: one client of the official SDK, one request a call. What it sends and reads is in the protocols.

The SDK is imported in a thread, on first use: that takes a good part of a second, in which the worker must live on.
Its typed resources are not used, only its transport (address, headers, errors, event stream): servers that speak the
protocol nearly right are the rule, and the protocols read what comes by their own small types. So a body goes in as
bytes and events come out as text, which also spares each of them a detour through the SDK's models.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
import msgspec

from trunkline import ConfigError
from trunkline.api.model import ModelAdapter, ModelEvent, ModelInfo, ModelRequest, model_error
from trunkline_openai.chat_completions import ChatCompletions
from trunkline_openai.errors import from_exception
from trunkline_openai.protocol import ApiProtocol
from trunkline_openai.responses import Responses
from trunkline_openai.settings import DEFAULT_MODEL, OpenAISettings

if TYPE_CHECKING:
    import openai

PROTOCOLS: dict[str, type[ApiProtocol]] = {"chat": ChatCompletions, "responses": Responses}
REST_SECONDS = 0.1
"""Seconds to wait for the end of a stream after its last event. A connection can be reused only after its end."""

LIST_TIMEOUT = 10.0
"""Seconds within which a server must have listed its models."""

DEFAULT_EMBEDDING_MODEL = "text-embedding-3-small"
"""The model of vectors when none is named."""

NO_ANSWERS = ("embed", "rerank", "whisper", "tts", "moderation")
"""Parts of the names of models that cannot hold a conversation."""


class _ListedModel(msgspec.Struct):
    """A model as servers list it; each calls the size of the window by another name."""

    id: str
    max_model_len: int | None = None
    context_length: int | None = None
    context_window: int | None = None
    max_context_length: int | None = None

    @property
    def info(self) -> ModelInfo:
        window = self.max_model_len or self.context_length or self.context_window or self.max_context_length
        return ModelInfo(id=self.id, context_window=window or 0)


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Embeddings(msgspec.Struct):
    data: list[_Embedding]


class _ModelListing(msgspec.Struct):
    data: list[_ListedModel] | None = None


class OpenAIAdapter(ModelAdapter):
    """OpenAI, or a server that speaks its protocol (``settings.base_url``)."""

    name = "openai"
    vendor = "openai"
    sees = True
    embeds = True

    def __init__(self, settings: OpenAISettings) -> None:
        self.continues = settings.continue_final_message
        self._settings = settings
        self._protocol = PROTOCOLS[settings.protocol]
        self._client: openai.AsyncOpenAI | None = None
        self._texts: type[openai.AsyncStream[str]] | None = None
        self._opening = anyio.Lock()
        self._first_model = ""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model (see ``ModelAdapter.stream``)."""
        key = self._key()
        model = request.model or self._settings.model or await self._default_model()
        body = {**self._protocol.body(request, model, self._settings), **self._settings.extra_body}
        reader = self._protocol.reader(request, model, key)
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

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models that the server lists."""
        key = self._key()
        client = await self._open(key)
        try:
            with anyio.fail_after(LIST_TIMEOUT):
                listing = await client.get("/models", cast_to=object)
            listed = msgspec.convert(listing, _ModelListing).data or []
        except TimeoutError:
            raise model_error("timeout", "the server did not list its models in time") from None
        except Exception as error:
            raise from_exception(error, began=False, key=key) from None
        return tuple(model.info for model in listed)

    async def embed(self, texts: Sequence[str], *, model: str = "") -> Sequence[Sequence[float]]:
        """Vectors by the server's embedding model."""
        key = self._key()
        client = await self._open(key)
        body = msgspec.json.encode({"input": list(texts), "model": model or DEFAULT_EMBEDDING_MODEL})
        try:
            answer = await client.post("/embeddings", cast_to=object, content=body)
            found = msgspec.convert(answer, _Embeddings).data
        except Exception as error:
            raise from_exception(error, began=False, key=key) from None
        if len(found) != len(texts):
            raise model_error("bad_response", f"{len(texts)} texts were embedded as {len(found)} vectors")
        return [one.embedding for one in sorted(found, key=lambda one: one.index)]

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
            raise from_exception(error, began=stream is not None, key=key) from None
        finally:
            if stream is not None:
                with anyio.CancelScope(shield=True):
                    await stream.close()

    def _key(self) -> str:
        try:
            return self._settings.key()
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
            return self._client

    async def _default_model(self) -> str:
        if self._settings.base_url is None:
            return DEFAULT_MODEL
        if not self._first_model:
            self._first_model = _first([model.id for model in await self.models()])
        return self._first_model


def _first(ids: Sequence[str]) -> str:
    """The first model that can hold a conversation, else the first."""
    able = [name for name in ids if not any(part in name.lower() for part in NO_ANSWERS)]
    for name in (*able, *ids):
        return name
    raise model_error("refused", "the server lists no model; set model in [adapters.openai]")


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
        default_headers={} if settings.base_url is None else elsewhere,  # type: ignore[arg-type]
        http_client=http,
    )
