"""A worker that is started before NATS, or during its absence."""

import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from trunkline.testing.platform import clean_environ
from trunkline.testing.worker_process import WorkerProcess
from trunkline_bus import EmbeddedServer, ServerSettings

pytestmark = pytest.mark.anyio

Make = Callable[..., WorkerProcess]


@pytest.fixture
def port() -> int:
    """A port for a server that is not there yet."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture
def worker(tmp_path: Path, port: int) -> Make:
    def make(**environ: str) -> WorkerProcess:
        given = {
            "TRUNKLINE_HOME": str(tmp_path / "home"),
            "TRUNKLINE_BUS__URL": f"nats://127.0.0.1:{port}",
            "TRUNKLINE_BUS__USER": "trunkline",
            "TRUNKLINE_BUS__PASSWORD": "right",
        }
        everything = {**clean_environ(), **given, **environ}
        return WorkerProcess("tools", "tools", tmp_path / "tools.log", everything)

    return make


async def test_the_start_waits_for_the_bus_and_reports_it(worker: Make, port: int, tmp_path: Path) -> None:
    """The log names the missing server, and the worker gets ready once the server is there."""
    process = worker()
    process.launch()
    with anyio.fail_after(60):
        while "waiting for NATS" not in process.text():
            assert process.alive, process.text()
            await anyio.sleep(0.05)
    assert "refused" in process.text()
    async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "bus", port=port, password="right")):
        await process.ready(60.0)
        process.kill()


async def test_the_start_gives_up_after_a_while(worker: Make) -> None:
    """The timeout ends the worker with a sentence and an exit status."""
    process = worker(TRUNKLINE_BUS__CONNECT_TIMEOUT="0")
    process.launch()
    assert await process.gone(60.0) != 0
    assert "cannot reach NATS" in process.text()


async def test_the_start_does_not_wait_when_authentication_fails(
    worker: Make, port: int, tmp_path: Path
) -> None:
    """A wrong password does not become right by waiting."""
    async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "bus", port=port, password="other")):
        process = worker()
        process.launch()
        assert await process.gone(60.0) != 0
    assert "authorization" in process.text().lower()
    assert "waiting for NATS" not in process.text()
