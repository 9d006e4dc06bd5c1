"""States and changes of the whole platform, the same for all sockets: turns, conversations, approvals, blocks and
workers in one feed, budgets and panic in another. ``platform_watch`` fills both.

A reader first gets the present states, then every change. A reader that falls behind gets
the present states again, so nothing is recorded about it.
"""

from typing import NamedTuple

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.runtime.block_access import BlockRights
from trunkline.workers.gateway.socket.bounded_log import BoundedLog
from trunkline.workers.gateway.socket.codec import encode_envelope, now
from trunkline.workers.gateway.socket.event_envelopes import ApprovalRequestEnvelope, ApprovalSettledEnvelope
from trunkline.workers.gateway.socket.status_envelopes import BankruptEnvelope, PanicEnvelope, StatusEnvelope
from trunkline.workers.gateway.socket.turn_envelopes import TurnPlace
from trunkline_bus import new_id

PlatformPayload = (
    type[StatusEnvelope]
    | type[ApprovalRequestEnvelope]
    | type[ApprovalSettledEnvelope]
    | type[BankruptEnvelope]
    | type[PanicEnvelope]
)

EVERYBODY = "*"
"""In place of a block: every identity may know it."""

EVERY_BLOCK = "+"
"""In place of a block: it is a total of all blocks, and only the owner with all blocks may know it. That ``block:*`` is
shared with somebody does not suffice, because a denial may close one of the blocks."""

PLATFORM = ""
"""In place of a block: it concerns no block, and only the owner may know it."""


class PlatformEntry(NamedTuple):
    """A state as it is sent, with the block whose readers may know it. ``running`` is the turn that it says to be
    running.
    """

    block: str
    text: str
    running: TurnPlace | None = None

    @property
    def size(self) -> int:
        """The number of characters."""
        return len(self.text)

    def is_for(self, rights: BlockRights) -> bool:
        """Report whether an identity with these rights may know it."""
        if rights.is_unlimited or self.block == EVERYBODY:
            return True
        return self.block not in (PLATFORM, EVERY_BLOCK) and rights.may(TokenScope.READ, self.block)


class PlatformFeed(BoundedLog[PlatformEntry]):
    """The changes, and the present states by their keys."""

    def __init__(self) -> None:
        super().__init__()
        self._states: dict[tuple[str, str], tuple[object, PlatformEntry]] = {}

    def states(self) -> list[PlatformEntry]:
        """Return the present states."""
        return [entry for _, entry in self._states.values()]

    def present(self, kind: str) -> dict[str, object]:
        """Return the payloads of the present states of a kind, by their names."""
        return {key[1]: payload for key, (payload, _) in self._states.items() if key[0] == kind}

    def tell(
        self,
        envelope: PlatformPayload,
        payload: object,
        *,
        block: str,
        key: tuple[str, str] | None = None,
        ended: bool = False,
        running: TurnPlace | None = None,
    ) -> None:
        """Send a change. With a ``key`` it is the present state until a later one replaces it, or has ``ended`` it. A
        state that is the present one already is not sent again.
        """
        if key is not None:
            before = self._states.get(key)
            if before is None if ended else before is not None and before[0] == payload:
                return
        made = envelope(id=new_id("env"), timestamp=now(), payload=payload)  # type: ignore[arg-type]
        entry = PlatformEntry(block, encode_envelope(made), running)
        if key is not None and ended:
            del self._states[key]
        elif key is not None:
            self._states[key] = (payload, entry)
        self.append(entry)
