"""Who asks the gateway: the channel, known by the bus subject or the HTTP surface, and the identity behind it."""

from dataclasses import dataclass

from trunkline.contracts.gateway.access import OWNER, Identity
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import refusal


@dataclass(frozen=True, slots=True)
class Sender:
    """``channel`` never comes from a message: it is the subject key that the worker's credentials allow."""

    channel: str
    identity: Identity = OWNER

    def require_owner(self, what: str) -> str:
        """The id of the owner. Refused with ``forbidden`` when it is somebody else: ``what`` is the owner's alone."""
        if self.identity.type != "owner":
            raise refusal(ErrorCode.FORBIDDEN, f"Only the owner {what}.")
        return self.identity.id
