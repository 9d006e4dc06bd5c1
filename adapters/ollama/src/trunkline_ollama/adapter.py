"""The adapter: one HTTP client, one request for each call. Translation is in the other modules.

The HTTP library is ``httpx2``, as in the other adapters, and not the vendor's Python client; the README has the
reasons. It is imported in a thread on first use.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec

from trunkline import ConfigError
from trunkline.api.model import (
    Embeddings,
    ModelAdapter,
    ModelError,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Reasoning,
    Usage,
    model_error,
)
from trunkline_ollama.answer_reader import OllamaAnswerReader, lines_of
from trunkline_ollama.chat_request import VENDOR, chat_body, keep_alive, offered_tools
from trunkline_ollama.errors import MissingModelError, from_exception, from_status
from trunkline_ollama.model_listing import ModelTags, ShownModel, first_that_answers
from trunkline_ollama.model_pull import PullProgress
from trunkline_ollama.server_address import is_loopback
from trunkline_ollama.settings import PARAMETERS, OllamaSettings

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

T = TypeVar("T")

CHAT, EMBED, PULL, SHOW, TAGS = "/api/chat", "/api/embed", "/api/pull", "/api/show", "/api/tags"

DEFAULT_EMBEDDING_MODEL = "embeddinggemma"
"""The model of vectors when none is named."""

REST_SECONDS = 0.1
"""Seconds to wait for the end of a stream after its last line. A connection can be reused only after its end."""

LIST_TIMEOUT = 10.0
"""Seconds within which the server must have listed its models."""

SHOWN_AT_ONCE = 8
"""The number of models whose details are asked for at the same time."""


class _Vectors(msgspec.Struct):
    embeddings: list[tuple[float, ...]] | None = None
    model: str | None = None
    prompt_eval_count: int | None = None


class OllamaAdapter(ModelAdapter):
    """Ollama on this machine, on another one, or ollama.com."""

    name = "ollama"
    vendor = VENDOR
    sees = True
    structured = True
    embeds = True
    embedding_model = DEFAULT_EMBEDDING_MODEL
    parameters = PARAMETERS

    def __init__(self, settings: OllamaSettings) -> None:
        self.continues = settings.continue_final_message
        self.configured = settings.is_configured
        self.default_model = settings.model
        self._settings = settings
        self._client: httpx2.AsyncClient | None = None
        self._opening = anyio.Lock()
        self._first_model = ""

    def enforces_format(self, request: ModelRequest) -> bool:
        """Report whether no tool is offered: a format constrains every token, so that no tool could be called."""
        return not offered_tools(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request to the model (see ``ModelAdapter.stream``). If the server does not have the model and the
        settings say ``pull``, pull the model, tell its progress as reasoning, and send the request again.
        """
        model = request.model or await self._default_model()
        began = False
        try:
            async with aclosing(self._answer(request, model)) as events:
                async for event in events:
                    began = True
                    yield event
            return
        except MissingModelError:
            if began or not self._settings.pull:
                raise
        async with aclosing(self._pull(model)) as progress:
            async for text in progress:
                yield Reasoning(text)
        async with aclosing(self._answer(request, model)) as events:
            async for event in events:
                yield event

    async def models(self) -> tuple[ModelInfo, ...]:
        """Return the models that the server has, with their details."""
        url, key = self._server()
        try:
            with anyio.fail_after(LIST_TIMEOUT):
                ids = await self.available()
            return await self._details(ids)
        except TimeoutError:
            raise model_error("timeout", "the server did not list its models in time") from None
        except Exception as error:
            raise from_exception(error, began=False, key=key, url=url) from None

    async def available(self) -> list[str]:
        """Return the names of the models that the server has. Raise ModelError."""
        return (await self._get(TAGS, ModelTags)).ids

    async def embed(
        self, texts: Sequence[str], *, model: str = "", dimensions: int | None = None
    ) -> Embeddings:
        """Return vectors by an embedding model of the server."""
        name = model or DEFAULT_EMBEDDING_MODEL
        body = {"model": name, "input": list(texts), **keep_alive(self._settings.parameters)}
        if dimensions is not None:
            body["dimensions"] = dimensions
        try:
            answer = await self._post(EMBED, body, _Vectors)
        except MissingModelError:
            if not self._settings.pull:
                raise
            async with aclosing(self._pull(name)) as progress:
                async for _ in progress:
                    pass
            answer = await self._post(EMBED, body, _Vectors)
        vectors = answer.embeddings or []
        if len(vectors) != len(texts):
            raise model_error("bad_response", f"{len(texts)} texts were embedded as {len(vectors)} vectors")
        usage = Usage(input_tokens=answer.prompt_eval_count or 0)
        return Embeddings(vectors=tuple(vectors), usage=usage, model=answer.model or name)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _answer(self, request: ModelRequest, model: str) -> AsyncGenerator[ModelEvent]:
        """Yield the events of one answer."""
        _, key = self._server()
        reader = OllamaAnswerReader(request, model, key)
        async with aclosing(self._lines(CHAT, chat_body(request, model, self._settings))) as lines:
            async for line in lines:
                with _readable(key):
                    read = list(reader.feed(line))
                for event in read:
                    yield event
                if reader.done:
                    break
            with suppress(ModelError), anyio.move_on_after(REST_SECONDS):
                async for _ in lines:
                    pass
        for event in reader.finish():
            yield event

    async def _pull(self, model: str) -> AsyncGenerator[str]:
        """Pull a model and yield what a person should see of the progress."""
        _, key = self._server()
        progress = PullProgress(model, key)
        log.info("pulling %s: the server does not have it", model)
        async with aclosing(self._lines(PULL, {"model": model, "stream": True})) as lines:
            async for line in lines:
                with _readable(key):
                    text = progress.feed(line)
                if text:
                    log.info("%s", text.strip())
                    yield text
        progress.finish()
        log.info("pulled %s", model)

    async def _lines(self, path: str, body: dict[str, Any]) -> AsyncGenerator[bytes]:
        """Yield the lines of a streamed answer. Raise only ModelError; close the connection when closed."""
        url, key = self._server()
        client = await self._open()
        began = False
        try:
            content, headers = msgspec.json.encode(body), _headers(key)
            async with client.stream("POST", url + path, content=content, headers=headers) as response:
                if response.status_code != 200:
                    failed = await response.aread()
                    raise from_status(response.status_code, failed, response.headers, key, body["model"])
                began = True
                async with aclosing(lines_of(response.aiter_bytes())) as lines:
                    async for line in lines:
                        yield line
        except Exception as error:
            raise from_exception(error, began=began, key=key, url=url) from None

    async def _get(self, path: str, kind: type[T]) -> T:
        return await self._fetch("GET", path, None, kind)

    async def _post(self, path: str, body: dict[str, Any], kind: type[T]) -> T:
        return await self._fetch("POST", path, body, kind)

    async def _fetch(self, method: str, path: str, body: dict[str, Any] | None, kind: type[T]) -> T:
        """Return the document of an answer that is not streamed. Raise ModelError."""
        url, key = self._server()
        client = await self._open()
        content = msgspec.json.encode(body) if body is not None else None
        try:
            response = await client.request(method, url + path, content=content, headers=_headers(key))
            if response.status_code != 200:
                model = str((body or {}).get("model", ""))
                raise from_status(response.status_code, response.content, response.headers, key, model)
            return msgspec.json.decode(response.content, type=kind)
        except Exception as error:
            raise from_exception(error, began=False, key=key, url=url) from None

    async def _details(self, ids: Sequence[str]) -> tuple[ModelInfo, ...]:
        """Return the details of models, in their order. A model that is removed meanwhile has none, and neither has one
        that the server does not describe in time.
        """
        found: dict[str, ModelInfo] = {}
        limit = anyio.CapacityLimiter(SHOWN_AT_ONCE)
        num_ctx = self._settings.parameters.get("num_ctx")

        async def show(id: str) -> None:
            async with limit:
                try:
                    shown = await self._post(SHOW, {"model": id}, ShownModel)
                except ModelError:
                    shown = ShownModel()
                found[id] = shown.info(id, num_ctx)

        with anyio.move_on_after(LIST_TIMEOUT):
            async with anyio.create_task_group() as tasks:
                for id in ids:
                    tasks.start_soon(show, id)
        return tuple(found.get(id) or ModelInfo(id=id) for id in ids)

    def _server(self) -> tuple[str, str]:
        """Return the address and the key, "" for no key. Raise ModelError if a setting is not usable."""
        try:
            url = self._settings.url
        except ConfigError as error:
            raise model_error("unavailable", f"{error.sentence} {error.hint}") from None
        try:
            return url, self._settings.key()
        except ConfigError as error:
            raise model_error("authentication", error.sentence) from None

    async def _open(self) -> "httpx2.AsyncClient":
        async with self._opening:
            if self._client is None:
                try:
                    self._client = await anyio.to_thread.run_sync(_new_client, self._settings)
                except Exception as error:
                    raise model_error(
                        "unavailable", f"no HTTP client could be created: {type(error).__name__}"
                    ) from None
            return self._client

    async def _default_model(self) -> str:
        """Return the configured model, else the first one of the server that answers."""
        if chosen := self._settings.model or self._first_model:
            return chosen
        self._first_model = first_that_answers(await self.models())
        if not self._first_model:
            raise model_error("refused", 'the server has no model; run "ollama pull NAME"')
        return self._first_model


@contextmanager
def _readable(key: str) -> Iterator[None]:
    """Raise ModelError for a line that cannot be read within the context."""
    try:
        yield
    except (msgspec.MsgspecError, ValueError) as error:
        text = f"a line cannot be read: {error}"
        raise model_error("bad_response", text.replace(key, "[key]") if key else text) from None


def _headers(key: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json"}
    return {**headers, "Authorization": f"Bearer {key}"} if key else headers


def _new_client(settings: OllamaSettings) -> "httpx2.AsyncClient":
    """Return a client that follows no redirect and uses no proxy for this machine. Nothing limits how long the server
    may be silent: it loads the model before it sends a header.
    """
    import httpx2

    timeout = httpx2.Timeout(None, connect=settings.connect_timeout)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
    return httpx2.AsyncClient(
        timeout=timeout, limits=limits, follow_redirects=False, trust_env=not is_loopback(settings.url)
    )
