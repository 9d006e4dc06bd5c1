"""The entries of the audit log: one for each decision and each call, kept on a stream and then in memory."""

from datetime import datetime
from typing import Literal

from msgspec import UNSET, UnsetType

from trunkline.contracts.tools.messages import Effect
from trunkline_bus import Payload

AuditEvent = Literal["decision", "call", "approval", "permissions", "lost"]
AuditDecision = Literal[
    "allowed", "asked", "denied", "approved", "expired", "answered", "unanswered", "withdrawn"
]


class AuditEntry(Payload, frozen=True, kw_only=True, tag="audit.entry.v1"):
    """One line of the audit log.

    ``decision``: the policies decided about a call; ``call``: a call ended; ``approval``: a person decided or
    answered, nobody did in time, or nobody is asked any more; ``permissions``: the owner changed what a block may do;
    ``lost``: ``count`` lines were no longer on the stream when memory was to have them. ``by`` are the policies that
    decided, or who did; ``why`` is a sentence. ``status`` is how a call ended: ``ok``, ``error``, ``cancelled``,
    ``unknown`` where it may have had its effect, or ``approval`` where it waits for a person. ``seconds`` is how long a
    call took, ``size`` the characters of its result. ``arguments`` and ``output`` are there as far as
    ``[audit] detail`` wants them.

    A line with a ``count`` stands for so many refusals or reads, from ``first`` to ``at``, that came faster than they
    could be noted one by one.
    """

    id: str
    at: datetime
    event: AuditEvent
    block: str
    actor: str
    conversation: str = ""
    turn: str = ""
    call: str = ""
    tool: str = ""
    effect: Effect | None = None
    decision: AuditDecision | None = None
    by: tuple[str, ...] = ()
    why: str = ""
    status: str = ""
    seconds: float | None = None
    size: int | None = None
    arguments: dict[str, str] | None = None
    output: str = ""
    count: int | UnsetType = UNSET
    first: datetime | UnsetType = UNSET
