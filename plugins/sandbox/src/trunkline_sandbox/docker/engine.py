"""Speaks with a Docker engine over its socket: HTTP by h11, JSON in and out, and connections that are handed over."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode

import anyio
import h11
import msgspec
from anyio.abc import SocketStream

NEWEST_API_VERSION = (1, 44)
"""The newest version of the engine's API that this was written by; engines of 2019 and later speak one up to it."""

DEFAULT_HOST = "unix:///var/run/docker.sock"
PIECE = 64 * 1024

ANSWER_SECONDS = 20.0
"""Seconds that an engine may take to answer. A hung engine must not block its caller."""

PING_SECONDS = 3.0
BROKEN, LATE = 502, 504


class EngineError(Exception):
    """The engine refused. ``status`` is of HTTP; 0 when it could not be reached, 502 when the connection broke, 504
    when it did not answer in time."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_silent(self) -> bool:
        """Report whether the engine gave no answer at all."""
        return self.status in (0, BROKEN, LATE)


class DockerEngine:
    """The engine that ``DOCKER_HOST`` names, or the one of this machine."""

    def __init__(self, host: str | None = None) -> None:
        self.host = host or os.environ.get("DOCKER_HOST") or DEFAULT_HOST
        self._version = ""

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        seconds: float | None = ANSWER_SECONDS,
    ) -> Any:
        """Send a request, wait ``seconds`` (None: without limit), and return the decoded answer; None when it is empty.
        Raises EngineError."""
        content = await self.content(method, path, body=body, query=query, seconds=seconds)
        return msgspec.json.decode(content) if content.strip() else None

    async def content(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        seconds: float | None = ANSWER_SECONDS,
    ) -> bytes:
        """Send a request and return the raw answer. Raises EngineError."""
        target = await self._versioned(path, query)
        with _deadline(seconds):
            connection, stream = await self._send_request(method, target, body)
            async with stream:
                response = await _wait_for_event(connection, stream, h11.Response)
                content = b""
                while not isinstance(event := await _next_event(connection, stream), h11.EndOfMessage):
                    content += event.data if isinstance(event, h11.Data) else b""
        if response.status_code >= 400:
            raise EngineError(response.status_code, _error_message(content))
        return content

    async def attach(self, container: str) -> tuple[SocketStream, bytes]:
        """A connection to the standard streams of a container, and what came on it already. Raises EngineError."""
        query = {"stream": "1", "stdin": "1", "stdout": "1", "stderr": "1"}
        target = await self._versioned(f"/containers/{container}/attach", query)
        with _deadline(ANSWER_SECONDS):
            connection, stream = await self._send_request("POST", target, None, upgrade=True)
            return await _hijack(connection, stream)

    async def ping(self) -> None:
        """Report whether it is there. Raises EngineError."""
        with _deadline(PING_SECONDS):
            connection, stream = await self._send_request("GET", "/_ping", None)
            async with stream:
                response = await _wait_for_event(connection, stream, h11.Response)
        said = dict(response.headers).get(b"api-version", b"1.41").decode()
        newest = min(NEWEST_API_VERSION, tuple(int(part) for part in said.split(".")))
        self._version = "/v" + ".".join(map(str, newest))

    async def _versioned(self, path: str, query: Mapping[str, str] | None) -> str:
        if not self._version:
            await self.ping()
        return f"{self._version}{quote(path)}{f'?{urlencode(query)}' if query else ''}"

    async def _send_request(
        self, method: str, target: str, body: object, *, upgrade: bool = False
    ) -> tuple[h11.Connection, SocketStream]:
        content = b"" if body is None else msgspec.json.encode(body)
        headers = [
            ("Host", "docker"),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(content))),
        ]
        headers += [("Connection", "Upgrade"), ("Upgrade", "tcp")] if upgrade else [("Connection", "close")]
        connection = h11.Connection(h11.CLIENT)
        wire = connection.send(h11.Request(method=method, target=target, headers=headers)) or b""
        wire += (connection.send(h11.Data(data=content)) or b"") if content else b""
        wire += connection.send(h11.EndOfMessage()) or b""
        stream = await self._connect()
        try:
            with _broken_as_engine_error():
                await stream.send(wire)
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise
        return connection, stream

    async def _connect(self) -> SocketStream:
        if not self.host.startswith("unix://"):
            raise EngineError(0, f"only an engine of this machine can be used (unix://...), not {self.host}")
        try:
            return await anyio.connect_unix(self.host.removeprefix("unix://"))
        except OSError as error:
            raise EngineError(0, f"{self.host} cannot be reached: {error.strerror or error}") from error


@contextmanager
def _deadline(seconds: float | None) -> Iterator[None]:
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError as error:
        raise EngineError(LATE, f"it did not answer within {seconds:.0f} seconds") from error


@contextmanager
def _broken_as_engine_error() -> Iterator[None]:
    """Turn a broken connection, such as after a restart of the engine, into an EngineError."""
    try:
        yield
    except (anyio.BrokenResourceError, OSError, h11.RemoteProtocolError) as error:
        raise EngineError(BROKEN, f"the connection to the engine was lost: {error}") from error


async def _hijack(connection: h11.Connection, stream: SocketStream) -> tuple[SocketStream, bytes]:
    try:
        event = await _next_event(connection, stream)
        if isinstance(event, h11.InformationalResponse) and event.status_code == 101:
            return stream, connection.trailing_data[0]
        raise EngineError(getattr(event, "status_code", 0), "the engine did not upgrade the connection")
    except BaseException:
        await anyio.aclose_forcefully(stream)
        raise


async def _next_event(connection: h11.Connection, stream: SocketStream) -> Any:
    with _broken_as_engine_error():
        while (event := connection.next_event()) is h11.NEED_DATA:
            try:
                connection.receive_data(await stream.receive(PIECE))
            except anyio.EndOfStream:
                connection.receive_data(b"")
    if isinstance(event, h11.ConnectionClosed):
        raise EngineError(BROKEN, "the engine closed the connection")
    return event


async def _wait_for_event(connection: h11.Connection, stream: SocketStream, kind: type) -> Any:
    while not isinstance(event := await _next_event(connection, stream), kind):
        pass
    return event


def _error_message(content: bytes) -> str:
    try:
        return str(msgspec.json.decode(content)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return content.decode(errors="replace")
