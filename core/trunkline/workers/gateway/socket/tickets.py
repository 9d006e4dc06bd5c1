"""Issues tickets, and takes each of them once, on whichever gateway it is presented."""

import secrets
from hashlib import sha256

from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.gateway.ticket import TICKET_BUCKET, SocketTicket
from trunkline.errors import Unavailable
from trunkline_bus import Bus, BusError, SequenceConflict

LONGEST = 100
"""The largest number of characters of a ticket that is looked up."""


class TicketStore:
    """The tickets that were not used yet. They are on the bus, and nobody can learn a ticket from its record."""

    def __init__(self, bus: Bus) -> None:
        self._records = bus.kv(TICKET_BUCKET)

    async def issue(self, identity: Identity) -> str:
        """Return a new ticket. Raises BusError."""
        ticket = secrets.token_urlsafe(32)
        await self._records.create(_key(ticket), SocketTicket(identity=identity))
        return ticket

    async def redeem(self, ticket: str) -> Identity | None:
        """Return the identity of a ticket, once; None for a ticket that is unknown, used or too old.

        Raises Unavailable if the bus does not answer.
        """
        if not ticket or len(ticket) > LONGEST:
            return None
        try:
            record = await self._records.get(_key(ticket))
            if record is None or record.value is None:
                return None
            await self._records.delete(record.key, record.revision)
        except SequenceConflict:
            return None  # another handshake used it in this moment
        except BusError as error:
            raise Unavailable(f"Tickets cannot be checked now: {error}") from error
        return record.value.identity


def _key(ticket: str) -> str:
    return sha256(ticket.encode("utf-8", "surrogateescape")).hexdigest()
