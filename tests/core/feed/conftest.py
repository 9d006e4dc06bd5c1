"""A real server with the platform's streams, for the tests of the feed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trunkline.contracts.topology import topology
from trunkline.contracts.workers.subjects import CLAIM_STORE
from trunkline_bus import Bus, BusSettings, EmbeddedServer, ServerSettings, apply, connect


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "bus")) as running:
        yield running


@pytest.fixture
async def bus(server: EmbeddedServer) -> AsyncIterator[Bus]:
    settings = BusSettings(
        url=server.url, user=server.user, password=server.password, name="test", claims=CLAIM_STORE.name
    )
    async with connect(settings) as connected:
        await apply(connected, topology())
        yield connected
