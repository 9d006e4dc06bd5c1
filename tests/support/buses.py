"""A NATS server with the streams, buckets and object stores of the platform, for tests of one part of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trunkline.contracts.topology import topology
from trunkline.contracts.workers.subjects import CLAIM_STORE, DEAD_LETTER_SUBJECT
from trunkline_bus import Bus, BusSettings, EmbeddedServer, ServerSettings, apply, connect


@asynccontextmanager
async def bus_at(folder: Path) -> AsyncIterator[Bus]:
    """A connection to a server that stores in ``folder``, while the context lasts."""
    async with EmbeddedServer(ServerSettings(store_dir=folder)) as server:
        settings = BusSettings(
            url=server.url,
            user=server.user,
            password=server.password,
            dead_letters=DEAD_LETTER_SUBJECT,
            claims=CLAIM_STORE.name,
        )
        async with connect(settings) as bus:
            await apply(bus, topology())
            yield bus
