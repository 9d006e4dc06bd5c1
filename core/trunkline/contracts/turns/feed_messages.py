"""The feed events of a turn. The feed is what clients display; it can be rebuilt from the journal."""

from datetime import datetime
from typing import Any

import msgspec

from trunkline.contracts.approvals.messages import ApprovalDetail, ApprovalScope
from trunkline.contracts.conversations.messages import Attachment, Message, ToolCall
from trunkline.contracts.tools.messages import StoredResult
from trunkline.contracts.turns.lanes import Lane
from trunkline.contracts.turns.messages import TurnOutcome
from trunkline_bus import Payload


class StatusShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="turn.status"):
    """A status of the agent under ``name``, such as ``hud``: ``data`` is for programs, ``text`` for people.

    A status belongs to the turn and to no message. It is displayed and never stored with the conversation.
    """

    name: str
    data: dict[str, Any] = {}
    text: str = ""


NOT_STORED = StatusShown(
    name="storage",
    data={"stored": False},
    text="The answer is not stored yet: memory cannot be written now. It is kept, and stored as soon as memory can be.",
)
"""The status shown if an answer is complete and memory cannot store it yet. The journal does not record this status,
because it describes the present.
"""


LANE_STATUS = "lane"
"""The name of the statuses that say that a preempted turn waits for a slot, and that it continues."""


def lane_status(preemptions: int, *, waiting: bool) -> StatusShown:
    """Return the status of a turn that was preempted for the time number ``preemptions``."""
    text = "The agent waits until other turns leave it a slot." if waiting else "The agent continues."
    return StatusShown(name=LANE_STATUS, data={"waiting": waiting, "preemptions": preemptions}, text=text)


COMPACTION_STATUS = "compaction"
"""The name of the status that says that a conversation is or was compacted."""


class TextDelta(msgspec.Struct, frozen=True, kw_only=True, tag="text.delta"):
    """Text of step ``step``, starting at character ``offset`` of the step's text. An ``offset`` below the length
    already received repeats text that the reader has.
    """

    step: int
    offset: int
    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, kw_only=True, tag="reasoning.delta"):
    """Reasoning that the provider discloses, starting at character ``offset`` of the step's reasoning."""

    step: int
    offset: int
    text: str


class TextReset(msgspec.Struct, frozen=True, kw_only=True, tag="text.reset"):
    """Discard the text and reasoning of this step, because its model call is repeated."""

    step: int


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True, tag="tool.started"):
    """A tool call of the model. ``client`` is true if the client must run the call."""

    step: int
    call: ToolCall
    client: bool = False


class ToolProgressed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tool.progressed"):
    """A tool call is running. ``note`` is its line of progress. ``output`` is live output of its programs, from
    character ``offset`` of all their output on.

    Live output is for people. It has gaps if the programs print faster than it is sent, and the journal does not
    record it. Only ``ToolEnded`` has the result.
    """

    step: int
    call_id: str
    note: str = ""
    offset: int = 0
    output: str = ""


class ToolEnded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tool.ended"):
    """The result of a tool call, as the model receives it. ``error_kind`` is the kind of error (``TOOL_ERROR_KINDS``).
    ``stored`` is set if ``output`` is shortened and the complete result is stored. ``files`` are the files that the
    call gave to the person; ``Gateway.file`` returns their content.
    """

    step: int
    call_id: str
    name: str
    output: str = ""
    error: bool = False
    error_kind: str = ""
    stored: StoredResult | msgspec.UnsetType = msgspec.UNSET
    files: tuple[Attachment, ...] | msgspec.UnsetType = msgspec.UNSET


class ApprovalRequested(msgspec.Struct, frozen=True, kw_only=True, tag="approval.requested"):
    """A person must decide about a call by ``expires_at``. ``id`` names the approval in lists and commands.
    ``detail`` is the preview of the call. ``id`` and ``detail`` are unset in items of an earlier version.
    """

    call: ToolCall
    call_hash: str
    question: str
    id: str | msgspec.UnsetType = msgspec.UNSET
    asked_at: datetime | msgspec.UnsetType = msgspec.UNSET
    expires_at: datetime | msgspec.UnsetType = msgspec.UNSET
    detail: ApprovalDetail | msgspec.UnsetType = msgspec.UNSET


class ApprovalSettled(msgspec.Struct, frozen=True, kw_only=True, tag="approval.settled"):
    """A decision about a call. ``by`` names the decider; ``deadline`` means that no decision was made in time.
    ``scope`` is unset if the decision holds for this call only. ``answer`` is unset if the decision is no answer to a
    question. ``id`` is the approval's id, unset in items of an earlier version.
    """

    call_id: str
    allow: bool
    by: str
    scope: ApprovalScope | msgspec.UnsetType = msgspec.UNSET
    answer: str | msgspec.UnsetType = msgspec.UNSET
    id: str | msgspec.UnsetType = msgspec.UNSET


class MessageSteered(msgspec.Struct, frozen=True, kw_only=True, tag="turn.steered"):
    """A message was added to the running turn."""

    message: Message


class TurnEnded(TurnOutcome, frozen=True, kw_only=True, tag="turn.ended"):
    """The turn ended and is stored. If it failed, ``sentence`` is the fixed text of its ``code``."""

    sentence: str | None = None


FeedEvent = (
    TextDelta
    | ReasoningDelta
    | TextReset
    | ToolStarted
    | ToolProgressed
    | ToolEnded
    | ApprovalRequested
    | ApprovalSettled
    | MessageSteered
    | StatusShown
    | TurnEnded
)


class FeedItem(Payload, frozen=True, kw_only=True, tag="feed.item.v1"):
    """An event at position ``index`` of ``epoch``. Within an epoch the indexes count up from 0 without gaps.

    A new epoch repeats the finished steps in full from offset 0. A reader that trims what it has shown therefore
    misses nothing and repeats nothing, however many items the previous owner sent.

    ``number`` is the event's position, from 0, among the events recorded in the turn's journal, not counting text. It
    is the same in every epoch, so it identifies what a reader has been shown even if the feed lost the item. It is
    unset for text, for events shown before they are recorded, and for the end of the turn. ``lane`` is the turn's lane;
    unset for ``interactive``.
    """

    turn: str
    epoch: int
    index: int
    event: FeedEvent
    number: int | msgspec.UnsetType = msgspec.UNSET
    lane: Lane | msgspec.UnsetType = msgspec.UNSET
