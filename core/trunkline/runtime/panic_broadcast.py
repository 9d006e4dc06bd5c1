"""Announces a panic to the workers over the bus, and waits for their answers."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import anyio

from trunkline.contracts.workers.messages import WorkerHeartbeat
from trunkline.contracts.workers.panic import Panic, PanicStopped
from trunkline.contracts.workers.subjects import PANIC, PANIC_STOPPED, WORKER_BUCKET
from trunkline_bus import Bus, ReceivedMessage

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


async def broadcast_panic(bus: Bus, by: str) -> PanicReplies:
    """Tell all workers, also on other hosts, to stop, and wait for their answers. Raises BusError."""
    async with bus.listen(PANIC_STOPPED) as news:
        await bus.publish(PANIC, Panic(by=by))
        return await _answers(bus, news)


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
