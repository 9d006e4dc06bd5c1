"""The monitor's end of the durable inbox: pinned partitions in, items in the order in which they were accepted.

The server delivers each partition to one live monitor. What a dead monitor had been given and not finished comes
again only after a while, and later items would overtake it. So a new owner looks at what lies in the stream before
the first item it is given, and takes that first.

Which partitions it pulls ``Membership`` says. One that another monitor should have is given up: what has not begun goes
back, what runs is ended here, and the others are told before the server may give the partition to one of them.
"""

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import anyio
from anyio.abc import TaskGroup

from trunkline.contracts.streams import inbox_consumer
from trunkline.contracts.turns.messages import InboxItem
from trunkline.contracts.turns.subjects import INBOX
from trunkline.runtime.partitions import require_partition_count, waiting_pulls
from trunkline.workers.monitor.claimed_item import ClaimedItem, nak_all
from trunkline.workers.monitor.membership import Membership
from trunkline_bus import Bus, BusError, Delivery, StoredMessage

log = logging.getLogger(__name__)

IN_PROGRESS_INTERVAL = 0.3
"""How often the server is told that held items are being worked on; well below the consumers' ack_wait."""

MAX_DONE_IDS = 10_000

TAKEOVER_LOOKAHEAD = 1_000
"""How many further items a new owner takes at once, so that what its predecessor had begun does not come one by one."""

MEMBERSHIP_INTERVAL = 1.0
"""How often is looked who else lives: as often as they say so."""

OfferCallback = Callable[[ClaimedItem], Awaitable[None]]
LeaveCallback = Callable[[int], Sequence[ClaimedItem]]
AnnounceCallback = Callable[[], Awaitable[None]]


class Inbox:
    """Takes items from the partitions that this monitor should pull and offers them in order.

    ``leave`` is told of a partition that is given up, and returns what goes back; ``announce`` tells other workers
    how this one stands.
    """

    def __init__(
        self,
        bus: Bus,
        membership: Membership,
        *,
        offer: OfferCallback,
        leave: LeaveCallback,
        announce: AnnounceCallback,
    ) -> None:
        self._bus = bus
        self._membership = membership
        self._offer = offer
        self._leave = leave
        self._announce = announce
        self._holding: dict[str, ClaimedItem] = {}
        self._done: OrderedDict[str, None] = OrderedDict()
        self._pins: dict[int, str] = {}
        self._searched: dict[int, str] = {}
        """Under which pin a partition was searched for what a former owner left."""
        self._pull_scopes: dict[int, anyio.CancelScope] = {}
        self._pulling = anyio.CancelScope()
        self._partitions = 0

    @property
    def pins(self) -> dict[int, str]:
        """The last pin of each partition that this monitor is given items of."""
        return dict(self._pins)

    async def open(self) -> None:
        """Learn how many partitions there are. Raises Unavailable while that is being changed."""
        self._partitions = await require_partition_count(self._bus)

    async def run(self) -> None:
        """Take items until ``close()``; keep what is held until cancelled."""
        undo = self._bus.on_reconnect(self._delete_done)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._extend_leases)
                with self._pulling:
                    async with anyio.create_task_group() as pulls:
                        await self._balance_partitions(pulls)
        finally:
            undo()

    def close(self) -> None:
        """Stop taking items, so that another monitor gets the partitions. What is held stays held."""
        self._pulling.cancel()

    async def settle(self, held: ClaimedItem) -> None:
        """The item is done and leaves the inbox."""
        await held.finish()
        self.release(held)

    def release(self, held: ClaimedItem) -> None:
        """The item is done, or given up: the server is told nothing more about it."""
        self._holding.pop(held.id, None)
        if not held.done:
            # It comes again, but only after a while: it is looked for before anything later is begun.
            self._searched.pop(held.partition, None)
            return
        self._done[held.id] = None
        if len(self._done) > MAX_DONE_IDS:
            self._done.popitem(last=False)

    async def _balance_partitions(self, pulls: TaskGroup) -> None:
        """Begin and end pulling as monitors come and go."""
        while True:
            unattended: set[int] = set()
            try:
                await self._membership.refresh()
                unattended = await self._unattended()
            except BusError as error:
                log.debug("who lives could not be seen: %s", error)
            wanted = self._membership.partitions_to_pull(self._pins, unattended, self._partitions)
            for partition in wanted - self._pull_scopes.keys():
                self._pull_scopes[partition] = anyio.CancelScope()
                pulls.start_soon(self._pull, partition, self._pull_scopes[partition])
            for partition in self._pull_scopes.keys() - wanted:
                self._pull_scopes[partition].cancel()
            await anyio.sleep(MEMBERSHIP_INTERVAL)

    async def _unattended(self) -> set[int]:
        """The partitions that should be another monitor's, and that nobody else pulls."""
        doubtful = self._membership.unconfirmed_partitions(self._partitions)
        return {one for one in doubtful if await waiting_pulls(self._bus, one) <= (one in self._pull_scopes)}

    async def _pull(self, partition: int, scope: anyio.CancelScope) -> None:
        """Take items of a partition until the scope is cancelled, then give it up, last of all its pin."""
        # The order of ADR 0008: take nothing more, start nothing more, announce which conversations are still being
        # finished, and only then give up the pin, by leaving ``pinned``. So whoever is given the partition already
        # reads that it has to wait for those. The items that have not started go back last: before that the server
        # would deliver them here again. After a crash anywhere the pin expires, and the new owner finds the items in
        # the stream (``_take_earlier``); what this monitor was finishing it takes over as from a dead one.
        async with self._bus.pinned(inbox_consumer(partition), INBOX) as deliveries:
            with scope:
                await self._take_all(deliveries)
            returned = self._leave(partition)
            self._pins.pop(partition, None)
            await self._announce()
        del self._pull_scopes[partition]
        await nak_all(returned)

    async def _take_all(self, deliveries: AsyncIterator[Delivery[InboxItem]]) -> None:
        async for delivery in deliveries:
            try:
                await self._take(delivery)
            except BusError as error:
                # Not settled, so it is delivered again, and what comes before it is looked for again.
                log.warning("an inbox item could not be taken in: %s", error)
                self._searched.pop(int(delivery.keys["partition"]), None)

    async def _take(self, delivery: Delivery[InboxItem]) -> None:
        partition = int(delivery.keys["partition"])
        if self._pins.get(partition) == delivery.pin:
            return await self._take_in(delivery)
        # A new pin: another monitor may have had the partition meanwhile, so what is known of its conversations is
        # forgotten before the first item under the pin is taken. The announcement has the standby of this partition
        # pull (ADR 0008). It comes last, because it only shortens a later takeover.
        self._pins[partition] = delivery.pin
        self._leave(partition)
        await self._take_in(delivery)
        await self._announce()

    async def _take_in(self, delivery: Delivery[InboxItem]) -> None:
        if delivery.envelope.id in self._done:
            await delivery.ack()
        elif delivery.envelope.id in self._holding:
            self._holding[delivery.envelope.id].delivery = delivery
        else:
            await self._take_earlier(delivery)
            if self._is_new(delivery):
                await self._hold(ClaimedItem(self._bus, delivery))

    async def _take_earlier(self, delivery: Delivery[InboxItem]) -> None:
        """Take what a former owner left unfinished: of the partition under a new pin, else of the conversation."""
        # The server delivers later items before it gives out again what a dead owner held, so the order is restored
        # from the stream (ADR 0002). The search counts as done only behind it: if it fails, or this monitor dies in
        # it, the next delivery searches again. Items that were taken twice are known by their id.
        partition = int(delivery.keys["partition"])
        if self._searched.get(partition) != delivery.pin:
            await self._take_unfinished(delivery, TAKEOVER_LOOKAHEAD, partition=delivery.keys["partition"])
            self._searched[partition] = delivery.pin
        elif delivery.redelivered:
            await self._take_unfinished(delivery, 0, **delivery.keys)

    async def _take_unfinished(self, delivery: Delivery[InboxItem], ahead: int, **keys: str) -> None:
        """Take all that lies before the delivery, and so many items from it on."""
        async for stored in self._bus.history(INBOX, after=0, **keys):
            ahead -= stored.seq >= delivery.seq
            if ahead < 0:
                break
            if self._is_new(stored):
                same = stored.envelope.id == delivery.envelope.id
                await self._hold(ClaimedItem(self._bus, delivery if same else stored))

    async def _delete_done(self) -> None:
        """Take what was done out of the inbox. A server whose disk was full may come back with an item that it could
        not delete and knows to be acknowledged: it delivers that to nobody."""
        for partition in tuple(self._pins):
            async for stored in self._bus.history(INBOX, after=0, partition=str(partition)):
                if stored.envelope.id in self._done:
                    await self._bus.delete(INBOX, stored.seq)

    def _is_new(self, stored: StoredMessage[InboxItem]) -> bool:
        return stored.envelope.id not in self._holding and stored.envelope.id not in self._done

    async def _hold(self, held: ClaimedItem) -> None:
        self._holding[held.id] = held
        await self._offer(held)

    async def _extend_leases(self) -> None:
        while True:
            await anyio.sleep(IN_PROGRESS_INTERVAL)
            for held in tuple(self._holding.values()):
                try:
                    await held.mark_in_progress()
                except BusError as error:
                    log.debug("inbox item %s could not be kept: %s", held.seq, error)
