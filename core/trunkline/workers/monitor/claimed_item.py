"""An item of the inbox that this monitor holds, however it came by it: delivered, or taken over from a dead owner.

A turn that the journal alone brings back is held in the same way, without an item.
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
        """Tells items apart for good; a server whose folder was deleted gives the same sequences out again."""
        self.seq = stored.seq
        self.partition = int(stored.keys["partition"])
        self.conversation = stored.keys["conversation"]
        self.item = stored.data
        self.delivery = stored if isinstance(stored, Delivery) else None
        self.first = isinstance(stored, Delivery) and not stored.redelivered
        """Whether nobody worked on it before: the server delivers it for the first time, about which it may err after
        its own crash, and no try has failed here."""
        self.done = False

    async def mark_in_progress(self) -> None:
        """Tell the server that the item is still being worked on."""
        if self.delivery is not None:
            await self.delivery.in_progress()

    async def finish(self) -> None:
        """The item is done and leaves the inbox. If the server does not hear it, the journal tells the next owner."""
        self.done = True
        if self.delivery is not None:
            await self.delivery.ack()
            return
        try:
            await self._bus.delete(INBOX, self.seq)
        except BusError:
            return  # gone already, or redelivered soon and settled then

    async def nak(self, delay: float | None = None) -> None:
        """Let the server deliver the item again, to whoever owns the partition then."""
        if self.delivery is not None:
            await self.delivery.nak(delay)


class RecoveredItem(ClaimedItem):
    """A turn that the journal brings back: what it ran for lies further behind in the inbox, or was taken in already.

    It comes before everything that waits. ``behind`` is what found it, and what the inbox keeps until it is done.
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
        """The turn is done or parked; nothing of it is in the inbox."""
        self.done = True


async def nak_all(items: Iterable[ClaimedItem]) -> None:
    """Hand all of them back."""
    for held in items:
        await held.nak()
