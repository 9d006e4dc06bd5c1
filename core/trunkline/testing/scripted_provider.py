"""A model provider on the loopback interface that answers by a script: a real HTTP server, only for tests and
benchmarks.

It serves these APIs, with or without streaming, and can simulate the failures of providers:

* OpenAI's Chat Completions, Responses and ``/models``
* Anthropic's Messages, ``/models`` and token counts
* Gemini's generated content, ``/models``, token counts and embeddings
* Ollama's native API
* Bedrock's Converse, ConverseStream, InvokeModel for vectors, token counts and lists of models
* SageMaker's InvokeEndpointWithResponseStream and its list of endpoints
* the agent loop's ``/engine/chat``

By default the person's last message is the program, in the language of ``trunkline.testing.script``, so any process can
use the server and the same conversation always gets the same answer. In a test::

    with ScriptedProvider() as provider:
        adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url, model="scripted"))
        ...
        assert provider.requests[0].path == "/v1/chat/completions"

As a separate process (which prints its address, and with ``--until-eof`` ends when its standard input closes)::

    python -m trunkline.testing.scripted_provider --port 0 [--script programs.json] [--until-eof]

``programs.json`` is a list of programs, one for each request in order. ``GET /_requests`` lists the requests and how
each answer ended; ``DELETE /_requests`` lists those whose answer has ended, and deletes them. After a complete stream
the connection can be used again, as with real servers.

Every request is checked by the vendor's rules (``trunkline.testing.vendor_apis``). A request that the vendor would
refuse is refused with status 400, and the server ends with an error.
"""

import argparse
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import SocketAttribute, SocketStream
from anyio.from_thread import start_blocking_portal
from anyio.streams.buffered import BufferedByteReceiveStream

from trunkline.testing.script import (
    MISCOUNTED,
    CallTools,
    CutConnection,
    Hang,
    Malformed,
    Miscount,
    RanTools,
    Raw,
    Refuse,
    Reply,
    Say,
    Script,
    ScriptedRequest,
    Step,
    Stop,
    Think,
    Wait,
    WebPage,
    answer_by_message,
    answer_in_order,
    pieces,
)
from trunkline.testing.vendor_apis.agent_loop import AgentLoopApi
from trunkline.testing.vendor_apis.anthropic import AnthropicApi
from trunkline.testing.vendor_apis.bedrock import BedrockApi
from trunkline.testing.vendor_apis.gemini import GeminiApi
from trunkline.testing.vendor_apis.multipart_form import parse_form
from trunkline.testing.vendor_apis.ollama import OllamaApi
from trunkline.testing.vendor_apis.openai import OpenAIApi
from trunkline.testing.vendor_apis.sagemaker import SageMakerApi
from trunkline.testing.vendor_apis.vendor_api import (
    Outcome,
    RecordedRequest,
    RuleViolation,
    VendorApi,
    WireFormat,
)

APIS: tuple[VendorApi, ...] = (
    AnthropicApi(),
    GeminiApi(),
    OpenAIApi(),
    OllamaApi(),
    BedrockApi(),
    SageMakerApi(),
    AgentLoopApi(),
)
"""The APIs that every scripted provider serves, on the paths of the vendors. The ``/models`` of Anthropic and Gemini
are those of requests with their headers, so they precede OpenAI's.
"""

MAX_HEAD = 64 * 1024
LINGER = 60.0
"""Seconds that a connection stays open after an answer. Clients close idle connections earlier, so a connection is
not closed at the moment when a client uses it again."""


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    headers: dict[str, str]
    content: bytes


class ScriptedProvider:
    """The server. As a context manager it runs in a separate thread of this process.

    ``script`` is a function from ``ScriptedRequest`` to a reply, or a sequence of programs, one for each request.
    ``models`` are the ids that ``/models`` lists. ``requests`` contains the requests, oldest first. ``faults``
    contains the rule violations in them, which raise AssertionError at the end unless the test removes them.
    """

    def __init__(
        self,
        script: Script | Sequence[str] = answer_by_message,
        *,
        models: Sequence[str] = ("scripted",),
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._script: Script = script if callable(script) else answer_in_order(script)
        self._models = tuple(models)
        self._host = host
        self._port = port
        self._asked: Counter[bytes] = Counter()
        self._exit = ExitStack()
        self._lock = threading.Lock()
        self.requests: list[RecordedRequest] = []
        self.faults: list[str] = []

    @property
    def address(self) -> str:
        """The server's address without a path, for ``[adapters.engine] url``."""
        return f"http://{self._host}:{self._port}"

    @property
    def url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"{self.address}/v1"

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings with which a platform uses this provider."""
        return {
            "runtime.provider_adapter": "openai",
            "adapters.openai.base_url": self.url,
            "adapters.openai.model": "scripted",
        }

    @property
    def answer_requests(self) -> list[RecordedRequest]:
        """The requests for an answer, without requests for the list of models."""
        return [request for request in self.requests if request.method == "POST"]

    def __enter__(self) -> Self:
        portal = self._exit.enter_context(start_blocking_portal())
        self._exit.enter_context(portal.wrap_async_context_manager(self.serving()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Self]:
        """Serve in this event loop within the context."""
        listener = await anyio.create_tcp_listener(local_host=self._host, local_port=self._port)
        async with listener, anyio.create_task_group() as tasks:
            self._port = listener.extra(SocketAttribute.local_port)
            tasks.start_soon(listener.serve, self._connection)
            yield self
            tasks.cancel_scope.cancel()
        if self.faults:
            raise AssertionError(f"vendors would have refused requests: {'; '.join(self.faults[:5])}")

    def forget(self) -> None:
        """Delete the recorded requests and the counts that ``once:`` uses."""
        with self._lock:
            self.requests.clear()
            self._asked.clear()

    async def _connection(self, stream: SocketStream) -> None:
        reader = BufferedByteReceiveStream(stream)
        async with stream:
            try:
                while True:
                    with anyio.fail_after(LINGER):
                        request = await _read(stream, reader)
                    await self._answer(stream, reader, request)
            except (
                TimeoutError,
                anyio.BrokenResourceError,
                anyio.ClosedResourceError,
                anyio.EndOfStream,
                anyio.IncompleteRead,
                anyio.DelimiterNotFound,
            ):
                return  # the client disconnected, or is no HTTP client

    async def _answer(
        self, stream: SocketStream, reader: BufferedByteReceiveStream, request: _Request
    ) -> None:
        path = request.path.partition("?")[0]
        if path == "/_requests":
            await _send_json(stream, 200, self._listing(request.method))
            return
        record = self._record(request, path)
        for api in APIS:
            wire = api.wire_format(record) if isinstance(record.body, dict) else None
            if wire is not None:
                if violations := tuple(api.violations(record, request.content)):
                    await _send_json(stream, 400, self._refused(record, api, violations))
                else:
                    await self._play(stream, reader, record, wire)
                return
            document = api.document(record, self._models)
            if document is not None:
                break
        record.outcome = "finished"
        if document is None:
            await _send_json(stream, 404, {"error": {"message": "Not found.", "code": "not_found"}})
        else:
            await _send_json(stream, 200, document, api.document_headers(record))

    def _listing(self, method: str) -> list[Any]:
        with self._lock:
            listed = [one for one in self.requests if method == "GET" or one.outcome != "running"]
            if method == "DELETE":  # what is billed for a running request is not known yet
                self.requests[:] = [one for one in self.requests if one.outcome == "running"]
                self._asked.clear()
        return [msgspec.to_builtins(request) for request in listed]

    def _record(self, request: _Request, path: str) -> RecordedRequest:
        body = _body(request)
        query = request.path.partition("?")[2]
        record = RecordedRequest(
            method=request.method, path=path, headers=request.headers, body=body, query=query
        )
        with self._lock:
            self.requests.append(record)
        return record

    def _refused(self, record: RecordedRequest, api: VendorApi, violations: Sequence[RuleViolation]) -> Any:
        record.outcome, record.faults = "finished", tuple(map(str, violations))
        with self._lock:
            self.faults += (f"{api.vendor}: {fault}" for fault in record.faults)
        return api.refusal(violations[0])

    async def _play(
        self,
        stream: SocketStream,
        reader: BufferedByteReceiveStream,
        record: RecordedRequest,
        kind: type[WireFormat],
    ) -> None:
        heard = self._counted(kind.hear(record))
        wire = kind(heard, len(self.requests))
        reply = wire.reply(self._script)
        streaming = kind.streams(record)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_watch, stream, reader, tasks.cancel_scope)
            player = _Player(stream, wire, reply, streaming)
            try:
                record.outcome = await player.play()
            except anyio.BrokenResourceError:  # here, because the task group would wrap the error
                record.outcome = "abandoned"
            finally:
                if not isinstance(reply[0] if reply else None, Refuse | WebPage):
                    record.billed = (wire.heard.words, wire.output_words)
                if record.outcome == "running":
                    record.outcome = "abandoned"
            tasks.cancel_scope.cancel()
        if record.outcome == "broken":
            await stream.aclose()

    def _counted(self, request: ScriptedRequest) -> ScriptedRequest:
        key = msgspec.json.encode([(line.role, line.text) for line in request.lines])
        with self._lock:
            self._asked[key] += 1
            return replace(request, again=self._asked[key] - 1)


class _Player:
    """Sends one reply on one connection."""

    def __init__(self, stream: SocketStream, wire: WireFormat, reply: Reply, streaming: bool) -> None:
        self._stream = stream
        self._wire = wire
        self._reply = reply
        self._streaming = streaming
        self._begun = False

    async def play(self) -> Outcome:
        match self._reply:
            case (Hang(), *_):
                await anyio.sleep_forever()
            case (WebPage(), *_):
                page = b"<!DOCTYPE html><html><body>\nIt works: this is no API.\n</body></html>\n"
                await _send(self._stream, 200, page, "text/html")
            case (Refuse() as refuse, *_) if not self._streaming or self._wire.failure(refuse) is None:
                await _send_json(self._stream, refuse.status, self._wire.refusal(refuse), refuse.headers)
            case _ if not self._streaming:
                await _send_json(self._stream, 200, self._wire.whole(self._reply))
            case _:
                return await self._stream_reply()
        return "finished"

    async def _stream_reply(self) -> Outcome:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {self._wire.content_type}\r\nCache-Control: no-cache\r\n"
        await self._stream.send(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for step in self._reply:
            if isinstance(step, CutConnection):
                return "broken"
            async for data in self._events(step):
                await self._chunk(data)
        await self._stream.send(b"0\r\n\r\n")
        return "finished"

    async def _events(self, step: Step) -> AsyncIterator[bytes]:
        if not self._begun and isinstance(step, Say | Think | CallTools | RanTools | Stop | Malformed):
            self._begun = True
            yield self._wire.begin()
        match step:
            case Miscount():
                self._wire.heard = replace(self._wire.heard, miscounted=True)
                self._wire.output_words = 20 * MISCOUNTED
            case Say(text, pause):
                for number, piece in enumerate(pieces(text)):
                    await anyio.sleep(pause if number else 0)
                    yield self._wire.text(piece)
            case Wait(seconds):
                await (anyio.sleep_forever() if seconds is None else anyio.sleep(seconds))
            case Raw(data, size):
                for start in range(0, len(data), size or len(data) or 1):
                    yield data[start : start + (size or len(data))]
                    await anyio.lowlevel.checkpoint()
            case _:
                for data in self._at_once(step):
                    yield data

    def _at_once(self, step: Step) -> Iterator[bytes]:
        match step:
            case Think(text):
                yield from (self._wire.reasoning(piece) for piece in pieces(text))
            case CallTools(calls):
                yield from self._wire.calls(calls)
            case RanTools(request, output):
                yield self._wire.ran(request, output)
            case Malformed():
                yield self._wire.malformed()
            case Refuse():
                yield self._wire.failure(step) or b""
            case Stop(reason):
                yield self._wire.stop(reason)
            case _:
                raise TypeError(f"{type(step).__name__} can only be the first step of a reply")

    async def _chunk(self, data: bytes) -> None:
        if data:
            await self._stream.send(b"%x\r\n%b\r\n" % (len(data), data))


async def _watch(stream: SocketStream, reader: BufferedByteReceiveStream, scope: anyio.CancelScope) -> None:
    """End the answer when the client disconnects. Bytes of the next request that arrive early are kept."""
    try:
        while True:
            reader.feed_data(await stream.receive())
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        scope.cancel()


async def _read(stream: SocketStream, reader: BufferedByteReceiveStream) -> _Request:
    head = (await reader.receive_until(b"\r\n\r\n", MAX_HEAD)).decode("latin-1")
    first, *lines = head.split("\r\n")
    method, _, rest = first.partition(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("expect", "").lower() == "100-continue":
        await stream.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    content = await reader.receive_exactly(int(headers.get("content-length", 0)))
    return _Request(method=method, path=rest.rpartition(" ")[0], headers=headers, content=content)


def _body(request: _Request) -> Any:
    """Return the fields of a form, a JSON document, or the text of any other body."""
    kind = request.headers.get("content-type", "")
    if kind.startswith("multipart/form-data"):
        return parse_form(request.content, kind)
    try:
        return json.loads(request.content) if request.content else None
    except ValueError:
        return request.content.decode(errors="replace")


async def _send(
    stream: SocketStream, status: int, content: bytes, kind: str, headers: Sequence[tuple[str, str]] = ()
) -> None:
    fields = [
        ("Content-Type", kind),
        ("Content-Length", str(len(content))),
        ("Connection", "close"),
        *headers,
    ]
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    await stream.send(f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode() + content)


async def _send_json(
    stream: SocketStream, status: int, body: Any, headers: Sequence[tuple[str, str]] = ()
) -> None:
    await _send(stream, status, msgspec.json.encode(body), "application/json", headers)


@contextmanager
def provider_process(*arguments: str) -> Iterator[str]:
    """Run the provider as a separate process and yield its base URL. The process ends with the context or with this
    process.
    """
    command = [sys.executable, "-m", "trunkline.testing.scripted_provider", "--until-eof", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError("the scripted provider did not start; its error is above")
            yield url
        finally:
            process.stdin.close()
        if process.wait():
            raise AssertionError("the scripted provider ended with an error; it is above")


async def _serve(options: argparse.Namespace) -> None:
    script: Script | Sequence[str] = answer_by_message
    if options.script:
        script = json.loads(await anyio.Path(options.script).read_text())
    async with ScriptedProvider(script, host=options.host, port=options.port).serving() as provider:
        sys.stdout.write(f"{provider.url}\n")
        sys.stdout.flush()
        if options.until_eof:
            await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
        else:
            await anyio.sleep_forever()


def main() -> None:
    """Serve until killed, or with ``--until-eof`` until standard input closes."""
    parser = argparse.ArgumentParser(prog="python -m trunkline.testing.scripted_provider")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--script", type=Path, help="a JSON list of programs, one for each request")
    parser.add_argument("--until-eof", action="store_true", help="end when standard input closes")
    anyio.run(_serve, parser.parse_args())


if __name__ == "__main__":
    main()
