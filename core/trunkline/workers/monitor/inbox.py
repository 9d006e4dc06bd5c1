"""The monitor's end of the durable inbox: pulls pinned partitions and offers items in the order of acceptance.

The server delivers each partition to one live monitor. It redelivers the unfinished items of a crashed
monitor only after a delay, and later items would overtake them. So a new owner first reads the stream for
items before its first delivery, and takes those first.

``Membership`` decides which partitions are pulled. When this monitor gives a partition up, it returns the items
that have not started and finishes its running turns. It announces these turns before the server can pin the
partition to another monitor.
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
"""Seconds between two extensions of the claims on items; well below the consumers' ack_wait."""

MAX_DONE_IDS = 10_000

TAKEOVER_LOOKAHEAD = 1_000
"""Further items that a new owner reads at once, so that it does not receive its predecessor's unfinished items one by
one."""

MEMBERSHIP_INTERVAL = 1.0
"""Seconds between two readings of the membership: the interval of the heartbeats."""

OfferCallback = Callable[[ClaimedItem], Awaitable[None]]
LeaveCallback = Callable[[int], Sequence[ClaimedItem]]
AnnounceCallback = Callable[[], Awaitable[None]]


class Inbox:
    """Takes items from the partitions that this monitor should pull and offers them in order.

    ``leave`` is called with a partition that is given up, and returns the items to return to the server;
    ``announce`` publishes this worker's heartbeat.
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
        self._claimed: dict[str, ClaimedItem] = {}
        self._done: OrderedDict[str, None] = OrderedDict()
        self._pins: dict[int, str] = {}
        self._searched: dict[int, str] = {}
        """The pin under which each partition was searched for items of a former owner."""
        self._pull_scopes: dict[int, anyio.CancelScope] = {}
        self._pulling = anyio.CancelScope()
        self._partitions = 0

    @property
    def pins(self) -> dict[int, str]:
        """The last pin of each partition that delivers items to this monitor."""
        return dict(self._pins)

    async def open(self) -> None:
        """Read the number of partitions. Raises Unavailable while it is being changed."""
        self._partitions = await require_partition_count(self._bus)

    async def run(self) -> None:
        """Take items until ``close()``; extend the claims until cancelled."""
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
        """Stop taking items, so that another monitor gets the partitions. Claimed items stay claimed."""
        self._pulling.cancel()

    async def settle(self, claimed: ClaimedItem) -> None:
        """Remove a finished item from the inbox and end its claim."""
        await claimed.finish()
        self.release(claimed)

    def release(self, claimed: ClaimedItem) -> None:
        """End the claim on an item that is done or given up: the claim is no longer extended."""
        self._claimed.pop(claimed.id, None)
        if not claimed.done:
            # The server redelivers the item after a delay: before a later item starts, the partition is searched.
            self._searched.pop(claimed.partition, None)
            return
        self._done[claimed.id] = None
        if len(self._done) > MAX_DONE_IDS:
            self._done.popitem(last=False)

    async def _balance_partitions(self, pulls: TaskGroup) -> None:
        """Start and stop pulling partitions whenever the live monitors change."""
        while True:
            unpulled: set[int] = set()
            try:
                await self._membership.refresh()
                unpulled = await self._unpulled_partitions()
            except BusError as error:
                log.debug("the membership could not be read: %s", error)
            assigned = self._membership.partitions_to_pull(self._pins, unpulled, self._partitions)
            for partition in assigned - self._pull_scopes.keys():
                self._pull_scopes[partition] = anyio.CancelScope()
                pulls.start_soon(self._pull, partition, self._pull_scopes[partition])
            for partition in self._pull_scopes.keys() - assigned:
                self._pull_scopes[partition].cancel()
            await anyio.sleep(MEMBERSHIP_INTERVAL)

    async def _unpulled_partitions(self) -> set[int]:
        """Return the partitions that are assigned to another monitor and that no other monitor pulls."""
        unconfirmed = self._membership.unconfirmed_partitions(self._partitions)
        return {
            one for one in unconfirmed if await waiting_pulls(self._bus, one) <= (one in self._pull_scopes)
        }

    async def _pull(self, partition: int, scope: anyio.CancelScope) -> None:
        """Take items of a partition until the scope is cancelled, then give up the partition and its pin."""
        # The order of ADR 0008: take no more items, start no more turns, announce the conversations that are being
        # finished, and only then give up the pin, by leaving ``pinned``. So the next owner can already read for which
        # conversations it must wait. The items that have not started are returned after the pin is given up, because
        # the server would otherwise deliver them here again. After a crash at any point the pin expires. The new owner
        # finds the items in the stream (``_take_earlier``), and takes over the turns that this monitor was finishing.
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
                # The item was not settled, so the server delivers it again, and the partition is searched again.
                log.warning("an inbox item could not be taken in: %s", error)
                self._searched.pop(int(delivery.keys["partition"]), None)

    async def _take(self, delivery: Delivery[InboxItem]) -> None:
        partition = int(delivery.keys["partition"])
        if self._pins.get(partition) == delivery.pin:
            return await self._take_in(delivery)
        # Under a new pin, another monitor may have had the partition meanwhile, so the cached state of the partition's
        # conversations is dropped before the first item under the pin is taken. The announcement makes the standby of
        # this partition pull (ADR 0008). The announcement is last, because it only shortens a later takeover.
        self._pins[partition] = delivery.pin
        self._leave(partition)
        await self._take_in(delivery)
        await self._announce()

    async def _take_in(self, delivery: Delivery[InboxItem]) -> None:
        if delivery.envelope.id in self._done:
            await delivery.ack()
        elif delivery.envelope.id in self._claimed:
            self._claimed[delivery.envelope.id].delivery = delivery
        else:
            await self._take_earlier(delivery)
            if self._is_new(delivery):
                await self._claim(ClaimedItem(self._bus, delivery))

    async def _take_earlier(self, delivery: Delivery[InboxItem]) -> None:
        """Take the unfinished items of a former owner: of the partition under a new pin, of the conversation for a
        redelivered item."""
        # The server delivers later items before it redelivers the items that a dead owner claimed, so the order is
        # restored from the stream (ADR 0002). The search is recorded after it has succeeded: after an error or a crash
        # the next delivery searches again. Items that are read twice are recognised by their id.
        partition = int(delivery.keys["partition"])
        if self._searched.get(partition) != delivery.pin:
            await self._take_unfinished(delivery, TAKEOVER_LOOKAHEAD, partition=delivery.keys["partition"])
            self._searched[partition] = delivery.pin
        elif delivery.redelivered:
            await self._take_unfinished(delivery, 0, **delivery.keys)

    async def _take_unfinished(self, delivery: Delivery[InboxItem], preceding: int, **keys: str) -> None:
        """Take all items before the delivery, and the first ``preceding`` items from the delivery on."""
        async for stored in self._bus.history(INBOX, after=0, **keys):
            preceding -= stored.seq >= delivery.seq
            if preceding < 0:
                break
            if self._is_new(stored):
                same = stored.envelope.id == delivery.envelope.id
                await self._claim(ClaimedItem(self._bus, delivery if same else stored))

    async def _delete_done(self) -> None:
        """Delete finished items from the inbox.

        A server whose disk was full may restart with items that are acknowledged but not deleted. The server delivers
        such items to no monitor.
        """
        for partition in tuple(self._pins):
            async for stored in self._bus.history(INBOX, after=0, partition=str(partition)):
                if stored.envelope.id in self._done:
                    await self._bus.delete(INBOX, stored.seq)

    def _is_new(self, stored: StoredMessage[InboxItem]) -> bool:
        return stored.envelope.id not in self._claimed and stored.envelope.id not in self._done

    async def _claim(self, claimed: ClaimedItem) -> None:
        self._claimed[claimed.id] = claimed
        await self._offer(claimed)

    async def _extend_leases(self) -> None:
        while True:
            await anyio.sleep(IN_PROGRESS_INTERVAL)
            for claimed in tuple(self._claimed.values()):
                try:
                    await claimed.mark_in_progress()
                except BusError as error:
                    log.debug("the claim on inbox item %s could not be extended: %s", claimed.seq, error)
