"""Sites on this machine controlled by a test, byte by byte, and a context like that of agents' calls."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import pytest

from trunkline import Memory, ToolContext
from trunkline._util.paths import open_beneath
from trunkline.config.settings import DocumentsSettings
from trunkline.documents.reader_pool import ReaderPool, reader_pool
from trunkline.documents.reader_registry import ReaderRegistry
from trunkline.documents.tool_documents import BlockDocuments
from trunkline.testing.contexts import NoTransport, tool_context
from trunkline_documents.plugin import trunkline_readers

Stream = anyio.abc.ByteStream
Behaviour = bytes | Callable[[Stream], Awaitable[None]]


def page(
    body: str | bytes, kind: str = "text/html; charset=utf-8", *, status: str = "200 OK", **headers: str
) -> bytes:
    """An answer as it goes over the line."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}"]
    lines += [f"Content-Type: {kind}"] if kind else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + data


def redirect(to: str, status: str = "302 Found") -> bytes:
    """An answer that leads elsewhere."""
    return page("", status=status, Location=to)


@dataclass
class Site:
    """A server. ``pages`` are by their paths; ``asked`` are the requests that came, whole."""

    port: int = 0
    host: str = "127.0.0.1"
    pages: dict[str, Behaviour] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        """Its address with host and port."""
        return f"http://{self.host}:{self.port}"

    @property
    def allow(self) -> str:
        """Return the owner's setting that opens it."""
        return f"{self.host}:{self.port}"

    @property
    def paths(self) -> list[str]:
        """Return the requested paths, in order."""
        return [one.split(" ")[1] for one in self.asked]

    async def serve(self, stream: Stream) -> None:
        """One connection, one answer."""
        try:
            async with stream:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += await stream.receive()
                self.asked.append(head.decode("latin-1"))
                path = self.paths[-1]
                answer = self.pages.get(path, self.pages.get(path.partition("?")[0]))
                if answer is None:
                    answer = page("not here", status="404 Not Found")
                if isinstance(answer, bytes):
                    await stream.send(answer)
                else:
                    await answer(stream)
        except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
            pass  # who asked had enough


Open = Callable[..., Awaitable[Site]]


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """Opens sites, at any free port by default."""
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:

        async def one(
            pages: dict[str, Behaviour] | None = None,
            *,
            host: str = "127.0.0.1",
            port: int = 0,
            tls: object = None,
        ) -> Site:
            from anyio.streams.tls import TLSListener

            listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
            site = Site(listener.extra(anyio.abc.SocketAttribute.local_port), host, dict(pages or {}))
            served = listener if tls is None else TLSListener(listener, tls, standard_compatible=False)  # type: ignore
            stack.push_async_callback(listener.aclose)
            tasks.start_soon(served.serve, site.serve)
            return site

        yield one
        tasks.cancel_scope.cancel()


@pytest.fixture
async def site(opened: Open) -> Site:
    """One site."""
    return await opened()


class Documents(BlockDocuments):
    """Parses as usual; the stored documents are in ``kept``."""

    def __init__(self, workspace: Path, pool: ReaderPool) -> None:
        files = partial(open_beneath, workspace)
        readers, memory = ReaderRegistry(trunkline_readers()), Memory(NoTransport(), "main")
        super().__init__(None, "main", "conv", files, readers, pool, memory)  # type: ignore[arg-type]
        self.kept: dict[str, str] = {}

    async def collect(self, name: str, text: str) -> None:
        """Keep it."""
        self.kept[name] = text


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[ToolContext]:
    """A call's context, with documents that are read in a process of their own."""
    async with reader_pool(DocumentsSettings(read_timeout=30, read_memory_mb=512)) as pool:
        pool.stop_idle = lambda: None  # type: ignore[method-assign]  # one process is enough for all pages of a test
        yield tool_context(tmp_path, documents=Documents(tmp_path, pool))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def answers(*texts: Sequence[str]) -> Callable[[str, int], Awaitable[Sequence[str]]]:
    """Return a resolver that gives these answers in turn, and then the last one."""
    said = [*texts]

    async def resolve(host: str, port: int) -> Sequence[str]:
        return said.pop(0) if len(said) > 1 else said[0]

    return resolve


@pytest.fixture
def resolver() -> Callable[..., Callable[[str, int], Awaitable[Sequence[str]]]]:
    """Makes resolvers."""
    return answers


@pytest.fixture
def make_page() -> Callable[..., bytes]:
    """Writes answers."""
    return page


@pytest.fixture
def make_redirect() -> Callable[..., bytes]:
    """Writes answers that lead elsewhere."""
    return redirect
