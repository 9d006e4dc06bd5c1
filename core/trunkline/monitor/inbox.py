"""The monitor's end of the durable inbox: pinned partitions in, items in the order in which they were accepted.

The server delivers each partition to one live monitor. What a dead monitor had been given and not finished comes
again only after a while, and later items would overtake it. So a new owner looks at what lies in the stream before
the first item it is given, and takes that first.
"""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import anyio

from trunkline.messages.turn import InboxItem
from trunkline.monitor.held import Held
from trunkline.subjects import INBOX, PARTITIONS, inbox_consumer
from trunkline_bus import Bus, BusError, Delivery

log = logging.getLogger(__name__)

KEEP_SECONDS = 0.6
"""How often the server is told that held items are being worked on; well below the consumers' ack_wait."""

REMEMBERED = 10_000

Offer = Callable[[Held], Awaitable[None]]


class Inbox:
    """Takes items from all partitions that this monitor is pinned to and offers them in order."""

    def __init__(self, bus: Bus, offer: Offer) -> None:
        self._bus = bus
        self._offer = offer
        self._holding: dict[str, Held] = {}
        self._done: OrderedDict[str, None] = OrderedDict()
        self._pins: dict[str, str] = {}
        self._pulling = anyio.CancelScope()

    @property
    def pins(self) -> tuple[str, ...]:
        """The last pin of each partition that this monitor was given something of."""
        return tuple(self._pins.values())

    async def run(self) -> None:
        """Take items until ``close()``; keep what is held until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_holding)
            with self._pulling:
                async with anyio.create_task_group() as pulls:
                    for partition in range(PARTITIONS):
                        pulls.start_soon(self._pull, partition)

    def close(self) -> None:
        """Stop taking items, so that another monitor gets the partitions. What is held stays held."""
        self._pulling.cancel()

    def release(self, held: Held) -> None:
        """The item is done, or given up: the server is told nothing more about it."""
        self._holding.pop(held.id, None)
        if not held.done:
            self._pins.clear()  # it comes again, but only after a while: look for it before anything later is begun
            return
        self._done[held.id] = None
        if len(self._done) > REMEMBERED:
            self._done.popitem(last=False)

    async def _pull(self, partition: int) -> None:
        async with AsyncExitStack() as stack:
            deliveries = await stack.enter_async_context(self._bus.pinned(inbox_consumer(partition), INBOX))
            async for delivery in deliveries:
                try:
                    await self._take(delivery)
                except BusError as error:
                    # Not settled, so it is delivered again, and what comes before it is looked for again.
                    log.warning("an inbox item could not be taken in: %s", error)
                    self._pins.pop(str(partition), None)

    async def _take(self, delivery: Delivery[InboxItem]) -> None:
        if delivery.envelope.id in self._done:
            await delivery.ack()
        elif delivery.envelope.id in self._holding:
            self._holding[delivery.envelope.id].delivery = delivery
        else:
            await self._take_earlier(delivery)
            await self._hold(Held(self._bus, delivery))

    async def _take_earlier(self, delivery: Delivery[InboxItem]) -> None:
        """Take what a former owner left unfinished: of the partition under a new pin, else of the conversation."""
        partition, conversation = delivery.keys["partition"], delivery.keys["conversation"]
        keys = {"partition": partition}
        if self._pins.get(partition) == delivery.pin:
            if not delivery.redelivered:
                return
            keys["conversation"] = conversation
        async for stored in self._bus.history(INBOX, after=0, **keys):
            if stored.seq >= delivery.seq:
                break
            if stored.envelope.id not in self._holding and stored.envelope.id not in self._done:
                await self._hold(Held(self._bus, stored))
        self._pins[partition] = delivery.pin

    async def _hold(self, held: Held) -> None:
        self._holding[held.id] = held
        await self._offer(held)

    async def _keep_holding(self) -> None:
        while True:
            await anyio.sleep(KEEP_SECONDS)
            for held in tuple(self._holding.values()):
                try:
                    await held.keep()
                except BusError as error:
                    log.debug("inbox item %s could not be kept: %s", held.seq, error)
