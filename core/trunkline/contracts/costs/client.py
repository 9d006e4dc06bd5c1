"""Watch the events of budgets, for channels that tell their owner."""

import logging
import math
from collections.abc import AsyncGenerator

import anyio

from trunkline.contracts.costs.messages import BudgetEvent
from trunkline.contracts.costs.subjects import BUDGET_EVENT
from trunkline_bus import Bus, BusError, ReceivedMessage

log = logging.getLogger(__name__)

PAUSE = 1.0


async def watch_budget_events(bus: Bus) -> AsyncGenerator[BudgetEvent, None]:
    """Yield the events from now on, each once, until closed. While the bus is away, wait.

    Live messages and the stream are merged, so an event that happens during an outage is yielded after it.
    """
    send, receive = anyio.create_memory_object_stream[BudgetEvent | None](math.inf)

    async def heard(message: ReceivedMessage[BudgetEvent]) -> None:
        send.send_nowait(None if message.gap else message.data)

    async def look_again() -> None:
        send.send_nowait(None)

    undo = bus.on_reconnect(look_again)
    subscription = await bus.subscribe(BUDGET_EVENT, heard, limit=1)
    try:
        begin, yielded = await _last_position(bus), set[str]()
        async for news in receive:
            for event in await _stored(bus, begin) if news is None else (news,):
                if event.id not in yielded:
                    yielded.add(event.id)
                    yield event
    finally:
        undo()
        await subscription.aclose()


async def _last_position(bus: Bus) -> int:
    while True:
        try:
            return await bus.last_seq(BUDGET_EVENT)
        except BusError as error:
            log.debug("the events of budgets cannot be read now: %s", error)
            await anyio.sleep(PAUSE)


async def _stored(bus: Bus, after: int) -> list[BudgetEvent]:
    while True:
        try:
            return [stored.data async for stored in bus.history(BUDGET_EVENT, after=after)]
        except BusError as error:
            log.debug("the events of budgets cannot be read now: %s", error)
            await anyio.sleep(PAUSE)
