"""The clients of boto3, opened in a thread on first use, and calls to them that can be cancelled."""

import os
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream

from trunkline.api.model import ModelError
from trunkline_bedrock.connections import ExchangeTracker, HttpExchange
from trunkline_bedrock.errors import from_exception
from trunkline_bedrock.event_reader import events_of
from trunkline_bedrock.settings import API_KEY_VARIABLE, BedrockSettings

T = TypeVar("T")
Event = dict[str, Any]

READ_TIMEOUT = 3600.0
"""Seconds of silence that the client bears. ``monitor.model_idle_timeout`` ends a call much earlier."""

MAX_CONNECTIONS = 64
"""The number of connections that stay open for further requests."""

QUEUED_EVENTS = 32
"""The number of events that wait for the event loop. A thread that has more waits, and so does the server."""

RUNTIME, CONTROL = "bedrock-runtime", "bedrock"


class _ReaderLeft(Exception):
    """Raised in the thread of an answer when its events are no longer read."""


class BedrockClients:
    """The clients of one AWS profile and region. A client is opened when it is first used."""

    def __init__(self, settings: BedrockSettings) -> None:
        self._settings = settings
        self._tracker = ExchangeTracker()
        self._lock = threading.Lock()
        self._session: Any = None
        self._clients: dict[str, Any] = {}

    async def call(self, service: str, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Return the response of an operation. Its body, if it is a stream, is read in full. Raise ModelError."""
        exchange = HttpExchange()
        ask = partial(self._call, exchange, service, operation, arguments)
        try:
            return await anyio.to_thread.run_sync(ask, abandon_on_cancel=True)
        finally:
            exchange.close()

    async def events(self, arguments: Mapping[str, Any], *, streaming: bool) -> AsyncGenerator[Event]:
        """Yield the events of an answer of the model. Close the connection when closed. Raise ModelError.

        One thread reads the events and hands them to the event loop. It is no worker thread of anyio, because a
        generator must not hold a task group across its events.
        """
        exchange = HttpExchange()
        send, receive = anyio.create_memory_object_stream[Event | ModelError](QUEUED_EVENTS)
        handing = _EventHandover(send, anyio.lowlevel.current_token())
        read = partial(self._read_answer, exchange, handing, arguments, streaming)
        try:
            threading.Thread(target=read, name="bedrock-answer", daemon=True).start()
            async for event in receive:
                if isinstance(event, ModelError):
                    raise event
                yield event
        finally:
            exchange.close()
            receive.close()
            send.close()

    async def aclose(self) -> None:
        """Close the connections. A thread does so, because another thread may be opening a client."""
        if self._clients:
            await anyio.to_thread.run_sync(self._close)

    def _close(self) -> None:
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

    def _call(
        self, exchange: HttpExchange, service: str, operation: str, arguments: Mapping[str, Any]
    ) -> Any:
        try:
            with self._tracker.carry(exchange):
                response = getattr(self._client(service), operation)(**arguments)
                if hasattr(response.get("body"), "read"):
                    response["body"] = response["body"].read()
                return response
        except Exception as error:
            raise from_exception(error, began=False, secrets=self._secrets()) from None

    def _read_answer(
        self,
        exchange: HttpExchange,
        handing: "_EventHandover",
        arguments: Mapping[str, Any],
        streaming: bool,
    ) -> None:
        """Read one answer, in a thread of its own."""
        began = False
        try:
            with self._tracker.carry(exchange):
                for event in self._answer(arguments, streaming):
                    began = True
                    handing.give(event)
        except _ReaderLeft:
            pass
        except Exception as error:
            with suppress(_ReaderLeft):
                handing.give(from_exception(error, began=began, secrets=self._secrets()))
        finally:
            handing.finish()

    def _answer(self, arguments: Mapping[str, Any], streaming: bool) -> Iterator[Event]:
        client = self._client(RUNTIME)
        if not streaming:
            yield from events_of(client.converse(**arguments))
            return
        stream = client.converse_stream(**arguments)["stream"]
        try:
            yield from stream
        finally:
            stream.close()

    def _client(self, service: str) -> Any:
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._open(service)
            return self._clients[service]

    def _open(self, service: str) -> Any:
        """Return a client without retries. Signed requests go to the configured endpoint only."""
        import boto3.session
        import botocore.config

        settings = self._settings
        if self._session is None:
            self._session = boto3.session.Session(profile_name=settings.profile, region_name=settings.region)
        config = botocore.config.Config(
            connect_timeout=settings.connect_timeout,
            read_timeout=READ_TIMEOUT,
            retries={"mode": "standard", "total_max_attempts": 1},
            max_pool_connections=MAX_CONNECTIONS,
            tcp_keepalive=True,
        )
        address = settings.endpoint_url
        if service == CONTROL and settings.control_endpoint_url:
            address = settings.control_endpoint_url
        client = self._session.client(service, endpoint_url=address, config=config)
        self._tracker.track(client)
        return client

    def _secrets(self) -> tuple[str, ...]:
        """Return the credentials in use, in order to take them out of a message."""
        found = [os.environ.get(API_KEY_VARIABLE, "")]
        with suppress(Exception):
            frozen = self._session.get_credentials().get_frozen_credentials()
            found += (frozen.access_key, frozen.secret_key, frozen.token)
        return tuple(filter(None, found))


class _EventHandover:
    """Gives events of a thread to the event loop, in a bounded queue."""

    def __init__(
        self, send: MemoryObjectSendStream[Event | ModelError], token: anyio.lowlevel.EventLoopToken
    ) -> None:
        self._send = send
        self._token = token

    def give(self, event: Event | ModelError) -> None:
        """Queue an event; wait while the queue is full. Raise _ReaderLeft if nobody reads it."""
        try:
            try:
                anyio.from_thread.run_sync(self._send.send_nowait, event, token=self._token)
            except anyio.WouldBlock:
                anyio.from_thread.run(self._send.send, event, token=self._token)
        except Exception:  # the stream is closed, or the event loop has ended
            raise _ReaderLeft from None

    def finish(self) -> None:
        """End the queue."""
        with suppress(Exception):  # the event loop has ended
            anyio.from_thread.run_sync(self._send.close, token=self._token)
