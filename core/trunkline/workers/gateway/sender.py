"""The sender of a request to the gateway: the channel, from the bus subject or the HTTP API, and the identity."""

from dataclasses import dataclass

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import OWNER, Identity
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import refusal


@dataclass(frozen=True, slots=True)
class Sender:
    """The channel and identity of a request. ``channel`` is never taken from a message: it is the subject key that the
    worker's credentials allow."""

    channel: str
    identity: Identity = OWNER

    def require_owner(self, what: str, scope: TokenScope = TokenScope.OWNER) -> str:
        """Return the id of the owner. Refused with ``forbidden`` for any other sender, and for a token of the owner
        with less than this scope; ``what`` completes "Only the owner ..."."""
        if self.identity.type != "owner" or not self.identity.may(scope):
            raise refusal(ErrorCode.FORBIDDEN, f"Only the owner {what}.")
        return self.identity.id

    def require_administrator(self, what: str, scope: TokenScope = TokenScope.OWNER) -> str:
        """Return the id of the owner, as ``require_owner`` does. Also refused for a token that reaches some blocks
        only, which could give itself the others.
        """
        actor = self.require_owner(what, scope)
        if self.identity.blocks is not None:
            raise refusal(ErrorCode.FORBIDDEN, f"Only the owner {what}, with a token for all blocks.")
        return actor
