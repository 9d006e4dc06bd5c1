"""The entries of the audit log, one for each decision and each call; stored on a stream and then in memory."""

from datetime import datetime
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.contracts.tools.messages import Effect
from trunkline_bus import Payload

AuditEvent = Literal["decision", "call", "approval", "permissions", "auth", "settings", "panic", "lost"]
AuditDecision = Literal[
    "allowed", "asked", "denied", "approved", "expired", "answered", "unanswered", "withdrawn"
]


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the audit log.

    ``event`` is ``decision`` (the policies decided about a call), ``call`` (a call ended), ``approval`` (an approval
    was decided, answered, expired or withdrawn), ``permissions`` (the owner changed what a block may do), ``auth`` (an
    identity, a token or a sign-in; ``status`` says what happened), ``settings`` (the owner changed some at the
    gateway), ``panic`` (somebody stopped everything at the gateway), or ``lost`` (the stream dropped ``count`` lines
    before memory stored them). ``by`` names the policies or the person that
    decided; ``why`` is a sentence. ``status`` is how a call ended: ``ok``, ``error``, ``cancelled``, ``unknown`` if
    it may have had its effect, or ``approval`` if it waits for a person. ``seconds`` is the duration of a call,
    ``size`` the number of characters of its result. ``[audit] detail`` decides whether ``arguments`` and ``output``
    are recorded.

    A line with a ``count`` stands for that many refusals or reads, from ``first`` to ``at``, that were too fast to
    record one by one.
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


class AuditEntry(Payload, AuditRecord, frozen=True, kw_only=True, tag="audit.entry.v1"):
    """One line of the audit log, as the bus and memory keep it. The fields are those of ``AuditRecord``."""
