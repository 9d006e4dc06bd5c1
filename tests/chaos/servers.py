"""The servers of a run: a single one, or a cluster of three of which each stream is on all. Reports the leader."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import httpx

from tests.ports import free_port
from trunkline.contracts.streams import JOURNAL_STREAM
from trunkline.runtime.connection_settings import MAX_STORE
from trunkline_bus import Bus, BusError, BusSettings, EmbeddedServer, ServerSettings, connect
from trunkline_bus.streams.retry import request_with_retry

PASSWORD = "chaos"
ELECTION = 60.0
"""Seconds within which the servers of a new cluster must have a leader."""


class Servers:
    """The servers by name: ``nats``, or ``nats-1`` and so on."""

    def __init__(self, named: Mapping[str, EmbeddedServer], monitors: Mapping[str, str]) -> None:
        self.named = dict(named)
        self._monitors = monitors
        """The address of each one's monitoring, by name."""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(self.named)

    @property
    def all(self) -> Sequence[EmbeddedServer]:
        """All of them, in the order of their names."""
        return tuple(self.named.values())

    async def until_healthy(self, name: str, seconds: float) -> bool:
        """Wait until a server of a cluster has caught up with the others, as who updates them one by one does."""
        if name not in self._monitors:
            return True
        async with httpx.AsyncClient(timeout=1.0) as http:
            with anyio.move_on_after(seconds):
                while True:
                    with suppress(httpx.HTTPError):
                        if (await http.get(f"{self._monitors[name]}/healthz")).status_code == 200:
                            return True
                    await anyio.sleep(0.1)
        return False

    async def leader(self, of: str, bus: Bus) -> str | None:
        """Return the leader of the journal ("stream leader") or of the cluster ("meta leader"); None when no server
        reports one."""
        try:
            if of == "stream leader":
                found = await request_with_retry(bus.link, f"STREAM.INFO.{JOURNAL_STREAM}", timeout=0.5)
                return str(found["cluster"]["leader"])
            return await self._meta_leader()
        except (BusError, KeyError):
            return None

    async def _meta_leader(self) -> str | None:
        async with httpx.AsyncClient(timeout=0.5) as http:
            for address in self._monitors.values():
                try:
                    found = (await http.get(f"{address}/jsz")).json()
                    return str(found["meta_cluster"]["leader"])
                except (httpx.HTTPError, KeyError, ValueError):
                    continue  # that one is down, or does not know
        return None


@asynccontextmanager
async def one_server(store: Path) -> AsyncIterator[Servers]:
    """A single server, which lets the disk be the limit as ``trunkline up`` does."""
    async with EmbeddedServer(ServerSettings(store_dir=store, max_store=MAX_STORE)) as server:
        yield Servers({"nats": server}, {})


@asynccontextmanager
async def cluster(folder: Path, size: int) -> AsyncIterator[Servers]:
    """Start a cluster with a leader. Clients know only the servers that they are given."""
    ports = [free_port() for _ in range(size * 2)]
    routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports[:size])
    async with AsyncExitStack() as stack:
        named: dict[str, EmbeddedServer] = {}
        for number in range(size):
            name = f"nats-{number + 1}"
            extra = (
                f"http: 127.0.0.1:{ports[size + number]}\n"
                f"cluster {{ name: chaos, listen: 127.0.0.1:{ports[number]}, no_advertise: true, "
                f"routes: [{routes}] }}\n"
            )
            settings = ServerSettings(store_dir=folder / name, name=name, password=PASSWORD, extra=extra)
            named[name] = await stack.enter_async_context(EmbeddedServer(settings))
        monitors = {name: f"http://127.0.0.1:{ports[size + n]}" for n, name in enumerate(named)}
        servers = Servers(named, monitors)
        await _elected(servers)
        yield servers


async def _elected(servers: Servers) -> None:
    url = ",".join(server.url for server in servers.all)
    settings = BusSettings(url=url, user=servers.all[0].user, password=PASSWORD)
    async with connect(settings) as bus:
        await request_with_retry(bus.link, "INFO", timeout=ELECTION)
        for name in servers.names:
            await servers.until_healthy(name, ELECTION)
