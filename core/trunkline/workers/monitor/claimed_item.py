"""An inbox item that this monitor works on, either delivered or recovered from the stream after a crash.

A turn that only the journal brings back is represented in the same way, without an inbox item.
"""

from collections.abc import Iterable

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
        """Identifies the item for good; a server whose folder was deleted assigns the same sequence numbers
        again."""
        self.seq = stored.seq
        self.partition = int(stored.keys["partition"])
        self.conversation = stored.keys["conversation"]
        self.item = stored.data
        self.delivery = stored if isinstance(stored, Delivery) else None
        self.first = isinstance(stored, Delivery) and not stored.redelivered
        """True when nobody has worked on the item: the server delivers it for the first time, and no attempt
        has failed here. The server may be wrong about this after its own crash."""
        self.done = False

    async def mark_in_progress(self) -> None:
        """Tell the server that the item is still being worked on."""
        if self.delivery is not None:
            await self.delivery.in_progress()

    async def finish(self) -> None:
        """Remove the finished item from the inbox. If the server does not receive this, the journal tells the
        next owner."""
        self.done = True
        if self.delivery is not None:
            await self.delivery.ack()
            return
        try:
            await self._bus.delete(INBOX, self.seq)
        except BusError:
            return  # already deleted, or redelivered soon and settled then

    async def nak(self, delay: float | None = None) -> None:
        """Let the server deliver the item again, to whoever owns the partition then."""
        if self.delivery is not None:
            await self.delivery.nak(delay)


class RecoveredItem(ClaimedItem):
    """A turn that is resumed from the journal, because its inbox item lies behind other items or is already
    acknowledged.

    It comes before everything that waits. ``behind`` is the item that led to it; the inbox keeps that item
    until this one is done.
    """

    def __init__(self, request: TurnRequested, behind: ClaimedItem) -> None:
        self.id = f"recalled-{request.turn}"
        self.seq = 0
        self.partition = behind.partition
        self.conversation = behind.conversation
        self.item = request
        self.delivery = None
        self.first = False
        self.done = False

    async def finish(self) -> None:
        """Mark the turn as done or parked; the inbox contains nothing of it."""
        self.done = True


async def nak_all(items: Iterable[ClaimedItem]) -> None:
    """Return all items to the server."""
    for held in items:
        await held.nak()
