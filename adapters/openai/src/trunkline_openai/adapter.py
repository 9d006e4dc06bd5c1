"""The adapter: one HTTP request a call. What it sends and reads is in the protocols.

The HTTP library (``httpx2``) is imported in a thread, on first use. There is no vendor's SDK in between: of OpenAI's
only the transport could be used, since servers that speak the protocol nearly right are the rule, and that cost a
monitor 23 MB, half a second before its first answer and a millisecond a call.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from trunkline import ConfigError, ModelAdapter, ModelEvent, ModelInfo, ModelRequest
from trunkline_openai.chat import Chat
from trunkline_openai.events import EventData
from trunkline_openai.faults import failure, from_exception, from_status, in_stream
from trunkline_openai.protocol import Protocol
from trunkline_openai.responses import Responses
from trunkline_openai.settings import DEFAULT_MODEL, OpenAISettings

if TYPE_CHECKING:
    import httpx2

PROTOCOLS: dict[str, type[Protocol]] = {"chat": Chat, "responses": Responses}
LIST_TIMEOUT = 10.0
"""Seconds within which a server must have listed its models."""

KEPT_CONNECTIONS = 100
"""How many connections are kept for later calls."""

DONE = b"[DONE]"
DRAIN_SECONDS = 0.1
"""How long the end of an answer is waited for once all of it is there."""

NO_ANSWERS = ("embed", "rerank", "whisper", "tts", "moderation")
"""Parts of the names of models that cannot hold a conversation."""


class _Listed(msgspec.Struct):
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


class _Listing(msgspec.Struct):
    data: list[_Listed] | None = None


class OpenAIAdapter(ModelAdapter):
    """OpenAI, or a server that speaks its protocol (``settings.base_url``)."""

    name = "openai"
    vendor = "openai"

    def __init__(self, settings: OpenAISettings) -> None:
        self.continues = settings.continues
        self._settings = settings
        self._protocol = PROTOCOLS[settings.protocol]
        self._client: httpx2.AsyncClient | None = None
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
                except msgspec.ValidationError as error:
                    raise failure("bad_response", f"an event has the wrong shape: {error}") from None
                for item in read:
                    yield item
        for item in reader.finish():
            yield item

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models that the server lists."""
        key = self._key()
        client = await self._open()
        try:
            with anyio.fail_after(LIST_TIMEOUT):
                response = await client.get("models", headers=_authorized(key))
            if not response.is_success:
                raise from_status(response.status_code, _body_of(response), key)
            listed = msgspec.json.decode(response.content, type=_Listing).data or []
        except TimeoutError:
            raise failure("timeout", "the server did not list its models in time") from None
        except Exception as error:
            raise from_exception(error, began=False, key=key) from None
        return tuple(model.info for model in listed)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _events(self, path: str, body: dict[str, Any], key: str) -> AsyncGenerator[Any]:
        """The events of one answer, as plain data. Closes the connection when it is closed; raises ModelError only."""
        client = await self._open()
        response: httpx2.Response | None = None
        try:
            content = msgspec.json.encode(body)
            request = client.build_request("POST", path, content=content, headers=_authorized(key))
            response = await client.send(request, stream=True)
            if not response.is_success:
                await response.aread()
                raise from_status(response.status_code, _body_of(response), key)
            async with aclosing(_read(response)) as events:
                async for event in events:
                    if isinstance(event, dict) and event.get("error"):
                        raise in_stream(event["error"], key)
                    yield event
        except Exception as error:
            raise from_exception(error, began=response is not None, key=key) from None
        finally:
            if response is not None:
                with anyio.CancelScope(shield=True):
                    await response.aclose()

    def _key(self) -> str:
        try:
            return self._settings.key()
        except ConfigError as error:
            raise failure("authentication", error.sentence) from None

    async def _open(self) -> "httpx2.AsyncClient":
        async with self._opening:
            if self._client is None:
                try:
                    self._client = await anyio.to_thread.run_sync(_new_client, self._settings)
                except Exception as error:
                    raise failure(
                        "unavailable", f"no client for this address: {type(error).__name__}"
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
    raise failure("refused", "the server lists no model; set model in [adapters.openai]")


async def _read(response: "httpx2.Response") -> AsyncGenerator[Any]:
    """The data of the events until the one that says it is over; what follows is read too, or else the connection
    could not be used again."""
    data = EventData()
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            for event in data.feed(chunk):
                if event.startswith(DONE):
                    with anyio.move_on_after(DRAIN_SECONDS):
                        async for _ in chunks:
                            pass
                    return
                yield msgspec.json.decode(event)


def _body_of(response: "httpx2.Response") -> Any:
    """What an HTTP error says: JSON as a rule."""
    try:
        return msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        return response.text.strip()


def _authorized(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


def _new_client(settings: OpenAISettings) -> "httpx2.AsyncClient":
    """A client that follows no redirect: a key goes to the configured address and nowhere else."""
    import httpx2

    return httpx2.AsyncClient(
        base_url=settings.url,
        headers={"User-Agent": "trunkline", **settings.organisation()},
        timeout=httpx2.Timeout(None, connect=settings.timeout_connect),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS),
        follow_redirects=False,
    )
