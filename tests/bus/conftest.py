"""Fixtures of the bus tests: a real server, connections to it, and subjects that no other test uses."""

import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import anyio
import pytest

from trunkline_bus import (
    Bus,
    BusSettings,
    ConsumerSpec,
    DeadLetter,
    EmbeddedServer,
    Endpoint,
    Payload,
    ServerSettings,
    StreamSpec,
    Subject,
    Topic,
    Topology,
    apply,
    connect,
)

_namespaces = count(1)


class Note(Payload, frozen=True, kw_only=True, tag="test.note.v1"):
    """A payload."""

    text: str = ""
    number: int = 0


class Other(Payload, frozen=True, kw_only=True, tag="test.other.v1"):
    """Another payload."""

    flag: bool = False


@dataclass
class Namespace:
    """Subjects, a stream and endpoints under a prefix of its own."""

    prefix: str
    Note: type[Note] = Note
    Other: type[Other] = Other
    live: Topic[Note] = field(init=False)
    journal: Topic[Note] = field(init=False)
    either: Topic[Any] = field(init=False)
    ask: Endpoint[Note, Note] = field(init=False)
    flow: Endpoint[Note, Note] = field(init=False)
    dead: Topic[DeadLetter] = field(init=False)
    stream: StreamSpec = field(init=False)

    def __post_init__(self) -> None:
        p = self.prefix
        self.live = Topic("live", Subject(f"{p}.evt.{{who}}.said"), Note)
        self.journal = Topic("journal", Subject(f"{p}.journal.{{who}}.noted"), Note, stream=p)
        self.either = Topic("either", Subject(f"{p}.journal.{{who}}.noted"), Note | Other, stream=p)
        self.ask = Endpoint("ask", Subject(f"{p}.cmd.{{who}}.ask"), Note, Note)
        self.flow = Endpoint("flow", Subject(f"{p}.cmd.{{who}}.flow"), Note, Note, streaming=True)
        self.dead = Topic("dead", Subject(f"{p}.dead.{{reason}}"), DeadLetter)
        self.stream = StreamSpec(name=p, subjects=(f"{p}.journal.>",), retention="limits")

    def consumer(self, **changes: Any) -> ConsumerSpec:
        """A pinned consumer of the journal."""
        settings: dict[str, Any] = {
            "stream": self.prefix,
            "name": "one",
            "filter": f"{self.prefix}.journal.>",
            "pinned_group": "owners",
            "pin_timeout": 1.0,
        }
        return ConsumerSpec(**{**settings, **changes})

    @property
    def topology(self) -> Topology:
        """The journal's stream."""
        return Topology(streams=(self.stream,))


@pytest.fixture(scope="module")
async def server(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[EmbeddedServer]:
    """A server shared by all tests of a module that do not hurt it. Not by more: as long as an async fixture lives, no
    test that is not async can call ``anyio.run``."""
    async with EmbeddedServer(ServerSettings(store_dir=tmp_path_factory.mktemp("nats"))) as running:
        yield running


@pytest.fixture
async def own_server(anyio_backend: str, tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A server for one test, to be killed at will."""
    async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "nats")) as running:
        yield running


@pytest.fixture
def namespace() -> Namespace:
    """Subjects of this test alone."""
    return Namespace(f"w{next(_namespaces)}")


@pytest.fixture
def settings_for(namespace: Namespace) -> Callable[..., BusSettings]:
    """Connection settings for a server; keyword arguments change them."""

    def make(server: EmbeddedServer, name: str = "test", **changes: Any) -> BusSettings:
        dead = f"{namespace.prefix}.dead.{{reason}}"
        return BusSettings(
            url=server.url,
            user=server.user,
            password=server.password,
            name=name,
            dead_letters=dead,
            **changes,
        )

    return make


@pytest.fixture
async def dial(settings_for: Callable[..., BusSettings]) -> AsyncIterator[Callable[..., Awaitable[Bus]]]:
    """``await dial(server, "name", …)``: a connection that is closed after the test."""
    async with AsyncExitStack() as stack:

        async def make(
            server: EmbeddedServer, name: str = "test", middleware: Any = (), **changes: Any
        ) -> Bus:
            settings = settings_for(server, name, **changes)
            return await stack.enter_async_context(connect(settings, middleware=middleware))

        yield make


@pytest.fixture
async def bus(server: EmbeddedServer, dial: Callable[..., Awaitable[Bus]]) -> Bus:
    """A connection to the shared server."""
    return await dial(server, "first")


@pytest.fixture
async def peer(server: EmbeddedServer, dial: Callable[..., Awaitable[Bus]]) -> Bus:
    """A second connection to the shared server."""
    return await dial(server, "second")


@pytest.fixture
async def journal(bus: Bus, namespace: Namespace) -> Topic[Note]:
    """The journal topic with its stream in place on the shared server."""
    await apply(bus, namespace.topology)
    return namespace.journal


@pytest.fixture
def eventually() -> Callable[..., Awaitable[None]]:
    """``await eventually(lambda: condition)``: poll until true, at most a minute."""

    async def wait(condition: Callable[[], Any], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it did not happen in time"
            await anyio.sleep(0.01)

    return wait


@pytest.fixture
def kill_server() -> Callable[[EmbeddedServer], Awaitable[None]]:
    """SIGKILL the server and wait until it has been started again."""

    async def kill(server: EmbeddedServer) -> None:
        before = server.restarts
        os.kill(server.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while server.restarts == before:
            assert time.monotonic() < deadline, "the server did not come back"
            await anyio.sleep(0.01)

    return kill


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Callable[..., "Popen[str]"]]:
    """Run Python source in a separate process; processes that are alive after the test are killed."""
    import trunkline_bus

    running: list[Popen[str]] = []
    path = str(Path(trunkline_bus.__file__).parent.parent)

    def start(source: str, *args: str) -> "Popen[str]":
        process = Popen(
            [sys.executable, "-c", source, *args],
            stdin=PIPE,
            stdout=PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
