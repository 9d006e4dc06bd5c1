"""The adapter: one HTTP request a call, read as server-sent events.

The HTTP library is ``httpx2``, the one that the official OpenAI SDK brings, so that the platform carries only one; it
is imported in a thread on first use.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio

from trunkline import ConfigError
from trunkline.api.model import ModelAdapter, ModelError, ModelEvent, ModelInfo, ModelRequest
from trunkline_engine.identity_headers import identity_headers
from trunkline_engine.protocol import Event, EventReader, from_status, model_error, request_body
from trunkline_engine.settings import EngineSettings

if TYPE_CHECKING:
    import httpx2


class EngineAdapter(ModelAdapter):
    """Another agent loop. It runs tools itself, so its calls come as ``ToolRan``."""

    name = "engine"
    vendor = "engine"
    configured = False
    """It answers only where it was chosen by name: an address alone must not take a conversation's loop away."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._client: httpx2.AsyncClient | None = None
        self._opening = anyio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the loop (see ``ModelAdapter.stream``)."""
        reader = EventReader()
        async with aclosing(self._events(request)) as events:
            async for event in events:
                for item in reader.feed(event):
                    yield item
                if reader.done:
                    return
        reader.finish()

    async def models(self) -> tuple[ModelInfo, ...]:
        """The contract has no list of models: the loop is one."""
        return (ModelInfo(id="engine"),)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _events(self, request: ModelRequest) -> AsyncGenerator[Event]:
        """The events of one answer. Closes the connection when it is closed; raises ModelError only."""
        began = False
        try:
            client = await self._open()
            headers, body = identity_headers(self._settings, request), request_body(request)
            async with client.stream("POST", self._settings.endpoint, json=body, headers=headers) as response:
                began = True
                kind = response.headers.get("content-type", "")
                if response.status_code != 200 or not kind.startswith("text/event-stream"):
                    raise from_status(response.status_code, await response.aread())
                async for event in _parsed(response.aiter_lines()):
                    yield event
        except Exception as error:
            raise _from_exception(error, began) from None

    async def _open(self) -> "httpx2.AsyncClient":
        async with self._opening:
            if self._client is None:
                self._client = await anyio.to_thread.run_sync(_new_client, self._settings)
            return self._client


async def _parsed(lines: AsyncIterator[str]) -> AsyncIterator[Event]:
    """Server-sent events out of lines."""
    kind, data = "message", list[str]()
    async for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield Event(kind, "\n".join(data))
            kind, data = "message", []
        elif field == "event":
            kind = value
        elif field == "data":
            data.append(value)


def _new_client(settings: EngineSettings) -> "httpx2.AsyncClient":
    import httpx2

    headers = {} if settings.token is None else {"Authorization": f"Bearer {settings.token.reveal()}"}
    timeout = httpx2.Timeout(None, connect=settings.connect_timeout)
    return httpx2.AsyncClient(headers=headers, timeout=timeout, follow_redirects=False)


def _from_exception(error: Exception, began: bool) -> ModelError:
    import httpx2

    kind = type(error).__name__
    match error:
        case ModelError():
            return error
        case ConfigError():
            return model_error("authentication", str(error))
        case httpx2.TimeoutException():
            return model_error("timeout", f"the loop did not answer in time ({kind})")
        case httpx2.ConnectError():
            return model_error("unavailable", f"the loop cannot be reached: {error}")
        case httpx2.TransportError() | httpx2.StreamError():
            return model_error("interrupted" if began else "unavailable", f"the connection broke ({kind})")
        case _:
            return model_error("bad_response", f"the answer cannot be read ({kind})")
