"""Reaches the bus to announce a panic or its release. The kill switch file already stops the workers of this host."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import msgspec

from trunkline.config import Config
from trunkline.contracts.workers.panic import PanicRelease
from trunkline.contracts.workers.subjects import PANIC_RELEASE
from trunkline.home.paths import Home
from trunkline.home.run_file import read_run_file
from trunkline.runtime.connection_settings import bus_settings, with_own_inbox
from trunkline.runtime.panic_broadcast import ANSWER_SECONDS, PanicReplies, broadcast_panic
from trunkline_bus import Bus, BusError, BusSettings, connect

BUS_SECONDS = 5.0
"""Seconds to try to reach the bus. The programs on this host have already been ended by then."""


async def broadcast_stop(config: Config, by: str) -> PanicReplies:
    """Tell all workers, also on other hosts, to stop, and wait for their answers."""
    try:
        async with _reached(config) as bus:
            if bus is None:
                return PanicReplies()
            return await broadcast_panic(bus, by)
    except (BusError, OSError, TimeoutError):
        return PanicReplies()


async def broadcast_release(config: Config, by: str) -> bool:
    """Tell all workers to continue. Return whether the bus was reached."""
    try:
        async with _reached(config) as bus:
            if bus is not None:
                await bus.publish(PANIC_RELEASE, PanicRelease(by=by))
            return bus is not None
    except (BusError, OSError, TimeoutError):
        return False


@asynccontextmanager
async def _reached(config: Config) -> AsyncIterator[Bus | None]:
    """Connect to the running bus; yield None when there is none. The context ends with TimeoutError when it takes
    longer than connecting and waiting for the answers may take.
    """
    where = _bus(config)
    if where is None:
        yield None
        return
    with anyio.fail_after(BUS_SECONDS) as reaching:
        async with connect(where) as bus:
            reaching.deadline = anyio.current_time() + BUS_SECONDS + ANSWER_SECONDS
            yield bus


def _bus(config: Config) -> BusSettings | None:
    found = read_run_file(Home.of(config))
    if config.settings.bus.url is not None:
        settings = bus_settings(config)
    elif found is not None:
        user, password = found.user or None, found.password or None
        settings = bus_settings(config, url=found.url, user=user, password=password)
    else:
        return None
    return msgspec.structs.replace(
        with_own_inbox(settings, "operator"), name="panic", connect_timeout=BUS_SECONDS
    )
