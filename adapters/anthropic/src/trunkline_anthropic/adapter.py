"""The adapter: one client of the official SDK, one request for each call. Translation is in the other modules.

The SDK is imported in a thread on first use, because the import takes a good part of a second in which the worker must
not block. Only its transport (address, headers, errors, event stream) is used and not its typed resources: compatible
servers leave out fields that the types require, and a body that goes in as bytes and events that come out as text
spare the detour through the types.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
import msgspec

from trunkline import ConfigError, Secret
from trunkline.api.model import Ability, ModelAdapter, ModelEvent, ModelInfo, ModelRequest, model_error
from trunkline_anthropic.claude_models import traits_of
from trunkline_anthropic.errors import from_exception
from trunkline_anthropic.message_content import VENDOR
from trunkline_anthropic.message_request import build_request, count_request
from trunkline_anthropic.message_stream import LAST_EVENT, MessageStreamReader
from trunkline_anthropic.settings import PARAMETERS, AnthropicSettings

if TYPE_CHECKING:
    import anthropic

MESSAGES, COUNT, MODELS = "/v1/messages", "/v1/messages/count_tokens", "/v1/models"

COMPATIBLE_VERSION = "2023-06-01"
"""The version of the API that compatible servers know. Anthropic itself receives the SDK's."""

REST_SECONDS = 0.1
"""Seconds to wait for the end of a stream after its last event. A connection can be reused only after its end."""

LIST_TIMEOUT = 10.0
"""Seconds within which a server must have listed its models or counted tokens."""

PAGE, MAX_PAGES = 1000, 20
"""The number of models that a page of the list may have, and the number of pages that are read."""


class _SupportedCapability(msgspec.Struct):
    supported: bool = False


class _ModelCapabilities(msgspec.Struct):
    image_input: _SupportedCapability = msgspec.field(default_factory=_SupportedCapability)
    pdf_input: _SupportedCapability = msgspec.field(default_factory=_SupportedCapability)
    structured_outputs: _SupportedCapability = msgspec.field(default_factory=_SupportedCapability)
    thinking: _SupportedCapability = msgspec.field(default_factory=_SupportedCapability)

    @property
    def abilities(self) -> frozenset[Ability]:
        listed: dict[Ability, _SupportedCapability] = {
            "tools": _SupportedCapability(supported=True),  # all models of the Messages API
            "images": self.image_input,
            "documents": self.pdf_input,
            "structured": self.structured_outputs,
            "reasoning": self.thinking,
        }
        return frozenset(ability for ability, capability in listed.items() if capability.supported)


class _ClaudeListing(msgspec.Struct):
    id: str
    max_input_tokens: int | None = None
    max_tokens: int | None = None
    capabilities: _ModelCapabilities | None = None

    @property
    def info(self) -> ModelInfo:
        known = traits_of(self.id) if "claude-" in self.id else None
        return ModelInfo(
            id=self.id,
            context_window=self.max_input_tokens or (known.context_window if known else 0),
            max_output=self.max_tokens or (known.max_output if known else 0),
            abilities=self.capabilities.abilities if self.capabilities else None,
        )


class _ModelPage(msgspec.Struct):
    data: list[_ClaudeListing] | None = None
    has_more: bool = False
    last_id: str | None = None


class _TokenCount(msgspec.Struct):
    input_tokens: int


class AnthropicAdapter(ModelAdapter):
    """Anthropic, or a server with its Messages API (``settings.base_url``)."""

    name = "anthropic"
    vendor = VENDOR
    continues = True
    sees = True
    reads = True
    takes_key = True
    structured = True
    parameters = PARAMETERS

    def __init__(self, settings: AnthropicSettings) -> None:
        self.default_model = settings.default_model
        self._settings = settings
        self._client: anthropic.AsyncAnthropic | None = None
        self._texts: type[anthropic.AsyncStream[str]] | None = None
        self._opening = anyio.Lock()
        self._first_model = ""

    def enforces_format(self, request: ModelRequest) -> bool:
        """Report whether the format is a schema; the vendor does not enforce any JSON object."""
        return request.response_format is not None and request.response_format.schema is not None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request to the model (see ``ModelAdapter.stream``)."""
        key = self._key(request.key)
        model = request.model or await self._default_model()
        body, headers = build_request(request, model, self._settings)
        reader = MessageStreamReader(request, model, key)
        async with aclosing(self._events(body, headers, key)) as events:
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
        """Return the models that the server lists, from all pages of the list."""
        key = self._key()
        client = await self._open(key)
        found: list[ModelInfo] = []
        query: dict[str, object] = {"limit": PAGE}
        try:
            with anyio.fail_after(LIST_TIMEOUT):
                for _ in range(MAX_PAGES):
                    listing = await client.get(MODELS, cast_to=object, options={"params": query})
                    page = msgspec.convert(listing, _ModelPage)
                    found += (model.info for model in page.data or ())
                    if not page.has_more or not page.last_id:
                        break
                    query["after_id"] = page.last_id
        except TimeoutError:
            raise model_error("timeout", "the server did not list its models in time") from None
        except Exception as error:
            raise from_exception(error, began=False, key=key) from None
        return tuple(found)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Return the number of input tokens as the vendor counts them; None if a compatible server does not count."""
        key = self._key()
        model = request.model or await self._default_model()
        client = await self._open(key)
        import anthropic  # imported in a thread by the line before

        body, headers = count_request(request, model, self._settings)
        content = msgspec.json.encode(body)
        try:
            with anyio.fail_after(LIST_TIMEOUT):
                answer = await client.post(
                    COUNT, cast_to=object, content=content, options={"headers": headers}
                )
            return msgspec.convert(answer, _TokenCount).input_tokens
        except TimeoutError:
            raise model_error("timeout", "the server did not count the tokens in time") from None
        except anthropic.NotFoundError as error:
            if self._settings.base_url is not None:
                return None
            raise from_exception(error, began=False, key=key) from None
        except Exception as error:
            raise from_exception(error, began=False, key=key) from None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _events(
        self, body: dict[str, Any], headers: Mapping[str, str], key: str
    ) -> AsyncGenerator[str]:
        """Yield the events of one answer as JSON text. Raise only ModelError; close the connection when closed.

        It iterates the SDK's generator itself: a generator that the stream holds would hold the stream, and an
        interrupted one would be left to the garbage collector, which may run in any thread.
        """
        client = await self._open(key)
        assert self._texts is not None  # opened with the client
        stream: anthropic.AsyncStream[str] | None = None
        try:
            stream = await client.post(
                MESSAGES,
                cast_to=str,
                content=msgspec.json.encode(body),
                options={"headers": headers},
                stream=True,
                stream_cls=self._texts,
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

    def _key(self, chosen: str = "") -> str:
        try:
            return Secret(env=chosen).reveal() if chosen else self._settings.key()
        except ConfigError as error:
            raise model_error("authentication", error.sentence) from None

    async def _open(self, key: str) -> "anthropic.AsyncAnthropic":
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
            if self._client.api_key == key:
                return self._client
            return self._client.with_options(
                api_key=key, default_headers=_compatible_headers(self._settings, key)
            )

    async def _default_model(self) -> str:
        """Return the configured model, else the first one that a compatible server lists."""
        if chosen := self._settings.default_model or self._first_model:
            return chosen
        self._first_model = next((model.id for model in await self.models()), "")
        if not self._first_model:
            raise model_error("refused", "the server lists no model; set model in [adapters.anthropic]")
        return self._first_model


def _stream_type() -> "type[anthropic.AsyncStream[str]]":
    """Return the SDK's stream of events as text, without its types for the events."""
    import anthropic

    class EventTexts(anthropic.AsyncStream[str]):
        async def __stream__(self) -> AsyncIterator[str]:
            events = self._iter_events()
            async for event in events:
                if event.data:
                    yield event.data
                if event.event == LAST_EVENT:
                    break
            with suppress(Exception), anyio.move_on_after(REST_SECONDS):
                async for _ in events:
                    pass

    return EventTexts


def _compatible_headers(settings: AnthropicSettings, key: str) -> dict[str, str]:
    """Return the headers that a compatible server needs besides the SDK's; none for Anthropic itself."""
    if settings.base_url is None:
        return {}
    return {"anthropic-version": COMPATIBLE_VERSION, "X-Api-Key": key}


def _new_client(settings: AnthropicSettings, key: str) -> "anthropic.AsyncAnthropic":
    """Return a client without retries that follows no redirect: a key goes to the configured address only."""
    import anthropic
    import httpx2

    timeout = httpx2.Timeout(None, connect=settings.connect_timeout)
    # Not the SDK's own: one that is left to the garbage collector closes itself in whatever loop runs by then.
    http = httpx2.AsyncClient(
        timeout=timeout, limits=anthropic.DEFAULT_CONNECTION_LIMITS, follow_redirects=False
    )
    return anthropic.AsyncAnthropic(
        api_key=key,
        base_url=settings.url,
        max_retries=0,
        timeout=timeout,
        default_headers=_compatible_headers(settings, key),
        http_client=http,
        open_telemetry=False,  # the platform traces its model calls itself
    )
