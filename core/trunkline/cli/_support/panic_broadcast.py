"""Announces a panic to the workers over the bus, and waits for their answers. The kill switch file already stops the
workers of this host.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import msgspec

from trunkline.config import Config
from trunkline.contracts.workers.messages import WorkerHeartbeat
from trunkline.contracts.workers.panic import Panic, PanicStopped
from trunkline.contracts.workers.subjects import PANIC, PANIC_STOPPED, WORKER_BUCKET
from trunkline.home.paths import Home
from trunkline.home.run_file import read_run_file
from trunkline.runtime.connection_settings import bus_settings, with_own_inbox
from trunkline_bus import Bus, BusError, BusSettings, ReceivedMessage, connect

BUS_SECONDS = 5.0
"""Seconds to try to reach the bus. The programs on this host have already been ended by then."""

ANSWER_SECONDS = 10.0
"""Seconds to wait for the workers. They check the kill switch five times a second and end programs within two
seconds; an overloaded machine takes longer."""


@dataclass(frozen=True, slots=True)
class PanicReplies:
    """The answers to a panic. ``bus``: the bus was reached. ``stopped`` names the kinds of workers that have stopped.
    ``silent`` names the workers that did not answer in time.
    """

    bus: bool = False
    stopped: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


async def broadcast_stop(config: Config, by: str) -> PanicReplies:
    """Tell all workers, also on other hosts, to stop, and wait for their answers."""
    try:
        async with _reached(config) as bus:
            if bus is None:
                return PanicReplies()
            async with bus.listen(PANIC_STOPPED) as news:
                await bus.publish(PANIC, Panic(on=True, by=by))
                return await _answers(bus, news)
    except (BusError, OSError, TimeoutError):
        return PanicReplies()


async def broadcast_release(config: Config, by: str) -> bool:
    """Tell all workers to continue. Return whether the bus was reached."""
    try:
        async with _reached(config) as bus:
            if bus is not None:
                await bus.publish(PANIC, Panic(on=False, by=by))
            return bus is not None
    except (BusError, OSError, TimeoutError):
        return False


async def _answers(bus: Bus, news: AsyncIterator[ReceivedMessage[PanicStopped]]) -> PanicReplies:
    waiting, kinds = await _concerned(bus), set[str]()
    with anyio.move_on_after(ANSWER_SECONDS if waiting else 0):
        async for message in news:
            kinds.add(message.data.kind)
            waiting.pop(message.data.worker, None)
            if not waiting:
                break
    silent = tuple(f"{beat.kind} worker (process {beat.pid} on {beat.host})" for beat in waiting.values())
    return PanicReplies(bus=True, stopped=tuple(sorted(kinds)), silent=silent)


async def _concerned(bus: Bus) -> dict[str, WorkerHeartbeat]:
    """Return the workers that run turns or tools, by their ids."""
    beats = [entry.value for entry in await bus.kv(WORKER_BUCKET).entries()]
    return {beat.id: beat for beat in beats if beat is not None and beat.kind in ("monitor", "tools")}


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
