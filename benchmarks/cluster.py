"""Three nats-servers on this machine, as one cluster. Nothing is measured in here."""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import anyio

from trunkline_bus import Bus, BusError, BusSettings, StreamSpec, Topology, apply, connect

SIZE = 3
LEADER_SECONDS = 30.0


@asynccontextmanager
async def cluster(sync: str) -> AsyncIterator[Bus]:
    """A connection to a cluster that can keep streams, with this ``sync_interval``. Raises TimeoutError."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-bench-")))
        ports = _free_ports(2 * SIZE)
        clients, routes = ports[:SIZE], ports[SIZE:]
        for number in range(SIZE):
            stack.enter_context(_server(_config(folder, number, clients, routes, sync)))
        with anyio.fail_after(LEADER_SECONDS):
            await _listening(clients[0])
        async with connect(BusSettings(url=f"nats://127.0.0.1:{clients[0]}")) as bus:
            with anyio.fail_after(LEADER_SECONDS):
                await _settled(bus)
            yield bus


async def _listening(port: int) -> None:
    while True:
        try:
            async with await anyio.connect_tcp("127.0.0.1", port):
                return
        except OSError:
            await anyio.sleep(0.05)


async def _settled(bus: Bus) -> None:
    """Wait until the three have met and keep a stream together."""
    probe = StreamSpec(name="PROBE", subjects=("probe",), replicas=SIZE)
    while True:
        try:
            await apply(bus, Topology(streams=(probe,)))
            return
        except BusError:
            await anyio.sleep(0.2)


def _config(folder: Path, number: int, clients: list[int], routes: list[int], sync: str) -> Path:
    others = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
    text = f"""\
server_name: n{number}
listen: "127.0.0.1:{clients[number]}"
max_payload: 8388608
jetstream {{ store_dir: {json.dumps(str(folder / f"n{number}"))}, sync_interval: {sync} }}
cluster {{ name: bench, listen: "127.0.0.1:{routes[number]}", routes: [{others}] }}
"""
    file = folder / f"n{number}.conf"
    file.write_text(text)
    return file


@contextmanager
def _server(config: Path) -> Iterator[None]:
    binary = shutil.which(str(Path(sys.executable).parent / "nats-server")) or "nats-server"
    with subprocess.Popen(
        [binary, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            yield
        finally:
            server.kill()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in bound]
