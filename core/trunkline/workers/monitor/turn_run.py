"""One run of a turn in this monitor: the turn, its inbox items, journal and caches."""

from dataclasses import dataclass, field

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.workers.monitor.approval_publisher import PublishedApprovals
from trunkline.workers.monitor.claimed_item import ClaimedItem
from trunkline.workers.monitor.journal import Journal
from trunkline.workers.monitor.mailbox import TurnMailbox
from trunkline.workers.monitor.parked_turns import ParkedTurn
from trunkline.workers.monitor.slots import TurnSlot
from trunkline.workers.monitor.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRun:
    """One run of a turn. ``messages`` caches the conversation's messages between its turns.

    ``inbox_item`` is the item whose redelivery resumes the turn after a crash of this monitor. The conversation
    queue settles it last. ``parked`` is the cached turn if the run continues one that this monitor parked.
    """

    turn: Turn
    request: TurnRequested
    epoch: int
    inbox_item: ClaimedItem
    controls: tuple[ClaimedItem, ...]
    mailbox: TurnMailbox
    journal: Journal
    messages: list[Message]
    slot: TurnSlot
    parked: ParkedTurn | None = None
    published: PublishedApprovals = field(init=False)
    """The approvals of the turn that were published."""

    def __post_init__(self) -> None:
        published = PublishedApprovals() if self.parked is None else self.parked.published
        object.__setattr__(self, "published", published)
