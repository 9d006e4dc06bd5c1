"""An inbox item that this monitor works on, either delivered or recovered from the stream after a crash.

A turn that only the journal brings back is represented in the same way, without an inbox item.
"""

from collections.abc import Iterable

from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.turns.messages import InboxItem, TurnRequested
from trunkline.contracts.turns.subjects import INBOX
from trunkline_bus import Bus, BusError, Delivery, StoredMessage


class ClaimedItem:
    """One inbox item until it is done.

    A delivered item is acknowledged through its delivery. An item recovered from the stream has no acknowledgement
    handle until the server redelivers it: it is deleted when done, or acknowledged through that redelivery.
    """

    def __init__(self, bus: Bus, stored: StoredMessage[InboxItem]) -> None:
        self._bus = bus
        self.id = stored.envelope.id
        """The permanent id of the item. Sequence numbers are not permanent: a server whose folder was deleted assigns
        them again."""
        self.seq = stored.seq
        self.partition = int(stored.keys["partition"])
        self.conversation = stored.keys["conversation"]
        self.item = stored.data
        self.delivery = stored if isinstance(stored, Delivery) else None
        self.first = isinstance(stored, Delivery) and not stored.redelivered
        """True when the server delivers the item for the first time and no attempt has failed here. After its own crash
        the server may wrongly report a first delivery."""
        self.accepted_at = stored.envelope.time
        self.done = False

    @property
    def age(self) -> float:
        """The seconds since the gateway accepted the item, by the clocks of both hosts."""
        return max(0.0, (utc_now() - self.accepted_at).total_seconds())

    async def mark_in_progress(self) -> None:
        """Extend the claim on the item: report to the server that work continues."""
        if self.delivery is not None:
            await self.delivery.in_progress()

    async def finish(self) -> None:
        """Remove the finished item from the inbox. If the server does not receive the removal, the next owner finds in
        the journal that the item is finished."""
        self.done = True
        if self.delivery is not None:
            await self.delivery.ack()
            return
        try:
            await self._bus.delete(INBOX, self.seq)
        except BusError:
            return  # already deleted, or redelivered soon and settled then

    async def nak(self, delay: float | None = None) -> None:
        """Return the item to the server, which delivers it again to the owner of the partition at that time."""
        if self.delivery is not None:
            await self.delivery.nak(delay)


class RecoveredItem(ClaimedItem):
    """A turn that is resumed from the journal, because its inbox item is behind other items or already acknowledged.

    The item precedes all waiting items. ``behind`` is the waiting item that caused the recovery; the inbox keeps that
    item until the recovered one is done.
    """

    def __init__(self, request: TurnRequested, behind: ClaimedItem) -> None:
        self.id = f"recalled-{request.turn}"
        self.seq = 0
        self.partition = behind.partition
        self.conversation = behind.conversation
        self.item = request
        self.delivery = None
        self.first = False
        self.accepted_at = behind.accepted_at
        self.done = False

    async def finish(self) -> None:
        """Mark the turn as done or parked. The inbox contains no item of the turn to remove."""
        self.done = True


async def nak_all(items: Iterable[ClaimedItem]) -> None:
    """Return all items to the server."""
    for held in items:
        await held.nak()
