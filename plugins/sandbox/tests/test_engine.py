"""The handling of an engine that breaks the connection, as during a restart. It needs no Docker."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import pytest

from trunkline_sandbox.docker.backend import Docker
from trunkline_sandbox.docker.engine import DockerEngine, EngineError
from trunkline_sandbox.settings import SandboxSettings

pytestmark = pytest.mark.anyio

PONG = b"HTTP/1.1 200 OK\r\nApi-Version: 1.44\r\nContent-Length: 2\r\n\r\nOK"
BROKEN = {
    "says nothing": b"",
    "ends in a header": b"HTTP/1.1 200 OK\r\nContent-Le",
    "ends in the answer": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[{",
    "speaks something else": b"what do you want\r\n\r\n",
}

Serve = Callable[[bytes], AbstractAsyncContextManager[str]]


@pytest.fixture
def engine(tmp_path: Path) -> Serve:
    """An engine that answers a ping, and anything else with these bytes, after which it hangs up."""

    @asynccontextmanager
    async def serve(answer: bytes) -> AsyncIterator[str]:
        async def greet(client: anyio.abc.ByteStream) -> None:
            async with client:
                asked = await client.receive()
                await client.send(PONG if b"/_ping" in asked else answer)

        path = tmp_path / "engine.sock"
        async with await anyio.create_unix_listener(path) as listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, greet)
            yield f"unix://{path}"
            tasks.cancel_scope.cancel()

    return serve


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
async def test_a_broken_engine_connection_is_reported_as_engine_failure(
    engine: Serve, answer: bytes, tmp_path: Path
) -> None:
    """For any request and any progress, no HTTP error reaches the caller, and panic does not treat the engine as
    absent and without programs."""
    async with engine(answer) as host:
        with pytest.raises(EngineError):
            await DockerEngine(host).call("GET", "/containers/json")
        with pytest.raises(EngineError):
            await DockerEngine(host).attach("one")
        sandbox = Docker(SandboxSettings(backend="docker"), tmp_path / "home", host=host)
        assert "engine fails" in (await sandbox.unavailable() or "")
        with pytest.raises(EngineError):
            await sandbox.end_all()
