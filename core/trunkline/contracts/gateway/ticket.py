"""Tickets: single-use credentials for the handshake of a socket, for clients that cannot send a header with it."""

from trunkline.contracts.gateway.access import Identity
from trunkline_bus import BucketSpec, Payload

TICKET_SECONDS = 30.0
"""Seconds within which a ticket may be used."""


class SocketTicket(Payload, frozen=True, kw_only=True, tag="gateway.ticket.v1"):
    """The identity that may open one socket. The key of the record is a hash of the ticket."""

    identity: Identity


TICKET_BUCKET: BucketSpec[SocketTicket] = BucketSpec(
    name="tickets",
    payload=SocketTicket,
    ttl=TICKET_SECONDS,
    storage="memory",
    max_bytes=4 * 1024 * 1024,
    description="Who may open a socket, by the hash of a ticket that was not used yet",
)
