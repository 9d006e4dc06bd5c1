"""The public shapes of ``/conversations`` and ``/api``: closed on output, tolerant on input (conflict C36).

Whatever leaves these paths is one of these structs, so nothing undocumented can (ARCH-4). ``openapi.py`` draws the
contract from them. A field with a default is optional and absent when it has nothing to say.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from trunkline.contracts.approvals.messages import ApprovalDetail, ApprovalScope, Settlement
from trunkline.contracts.blocks.messages import BlockConfig, PulseState
from trunkline.contracts.policies.messages import Policy
from trunkline.contracts.turns.messages import FinishReason
from trunkline.errors import ErrorCode


class Out(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of everything that leaves."""


class In(msgspec.Struct, frozen=True, kw_only=True):
    """Base of everything that comes in; unknown fields are passed over."""


# What comes in -----------------------------------------------------------------------------------------------


class NewMessage(In, frozen=True, kw_only=True):
    """A message. ``metadata.client_message_id`` makes a repeat harmless; ``metadata.block`` says where it begins."""

    content: str
    metadata: dict[str, Any] = {}


class ForkRequest(In, frozen=True, kw_only=True):
    """Ask again from a turn's model call number ``step``, from 0; with another model, or saying something there."""

    step: Annotated[int, msgspec.Meta(ge=0)]
    model: str | None = None
    content: str | None = None


class CancelRequest(In, frozen=True, kw_only=True):
    """How to end a turn."""

    mode: Literal["now", "after_step"] = "now"


class DecisionRequest(In, frozen=True, kw_only=True):
    """A decision about a parked call; ``hash`` is the one that the approval request showed. With ``scope`` a yes holds
    for calls like it too, in this conversation or always. A question (``detail.kind``) is given an ``answer`` and needs
    no ``allow``; with ``allow`` false it is left unanswered."""

    hash: str
    allow: bool | None = None
    scope: ApprovalScope = "once"
    answer: str = ""


class NewBlock(In, frozen=True, kw_only=True):
    """A block to make."""

    name: str
    config: BlockConfig = BlockConfig()


class ConversationChanges(In, frozen=True, kw_only=True):
    """A title for a conversation; null is the one that is made from what was said first."""

    title: str | None


class BlockChanges(In, frozen=True, kw_only=True):
    """Choices of a block to change, as a JSON merge patch (RFC 7396) of its ``config``: what is null is taken out, what
    is not named stays."""

    config: dict[str, Any]


class StopRequest(In, frozen=True, kw_only=True):
    """How to stop a block: its turns are cancelled, or with ``finish`` go on to their end."""

    finish: bool = False


class ResetRequest(In, frozen=True, kw_only=True):
    """What a block is to lose: its conversations and what its agent wrote and learned; with ``hard`` its documents,
    identity, sliders and workspace too."""

    hard: bool = False


# What leaves -------------------------------------------------------------------------------------------------


class Error(Out, frozen=True, kw_only=True):
    """Every error: a fixed code and its fixed sentence. The header ``X-Correlation-ID`` leads to the log. Of a request
    that is not valid, or names a block that is not there, ``metadata.field`` is a JSON pointer into the body, or the
    name of a parameter or header, and ``metadata.reason`` says what is wrong there. Of a credential that is missing
    or wrong, ``metadata.reason`` says where it is sent. Of a turn that failed, ``metadata.detail`` tells the owner why:
    one line for people, without secrets and addresses."""

    code: ErrorCode
    message: str
    metadata: dict[str, Any] = {}


class ConversationItem(Out, frozen=True, kw_only=True):
    """A conversation in the list."""

    id: str
    title: str | None = None
    created_at: datetime
    updated_at: datetime
    message_count: int


class ConversationList(Out, frozen=True, kw_only=True):
    """A page of conversations, newest first."""

    conversations: tuple[ConversationItem, ...]
    total: int
    limit: int
    offset: int


class ConversationMessage(Out, frozen=True, kw_only=True):
    """A message. The role ``tool`` is only shown when ``include=tools`` was asked for."""

    id: str
    role: Literal["user", "assistant", "tool", "system"]
    content: str
    created_at: datetime
    metadata: dict[str, Any] = {}


class ConversationDetail(Out, frozen=True, kw_only=True):
    """A conversation with its messages."""

    id: str
    title: str | None = None
    messages: tuple[ConversationMessage, ...]
    created_at: datetime
    updated_at: datetime


class UsageCount(Out, frozen=True, kw_only=True):
    """Tokens of a turn."""

    prompt_tokens: int
    completion_tokens: int


class ApprovalState(Out, frozen=True, kw_only=True):
    """A call that waits for a person's decision, or was decided. ``detail`` is what to show of it: a diff, a command, a
    message, or its arguments. A decision goes to ``/api/turns/{turn}/calls/{call}/decision`` with this ``hash``."""

    id: str
    turn: str
    call: str
    hash: str
    tool: str
    block: str
    conversation_id: str
    channel: str
    question: str
    detail: ApprovalDetail
    asked_at: datetime
    expires_at: datetime
    settled: Settlement | None = None
    arguments: dict[str, Any] | None = None


class ApprovalStates(Out, frozen=True, kw_only=True):
    """Approvals, the one that was asked first in front."""

    approvals: tuple[ApprovalState, ...]


class GrantStates(Out, frozen=True, kw_only=True):
    """What was allowed for longer than one call, as policies."""

    grants: tuple[Policy, ...]


class TurnDetail(Out, frozen=True, kw_only=True):
    """Where a turn stands."""

    id: str
    conversation_id: str
    block: str
    status: Literal["queued", "running", "parked", "finished"]
    usage: UsageCount
    finish_reason: FinishReason | None = None
    message_id: str | None = None
    error: Error | None = None


class Accepted(Out, frozen=True, kw_only=True):
    """A message that was taken in beside a running answer. ``otherwise`` is the turn that answers it if that one has
    ended before it could take it in; until then there is no such turn."""

    turn: str
    conversation_id: str
    message_id: str
    otherwise: str | None = None


class BlockState(Out, frozen=True, kw_only=True):
    """A block. With a ``problem`` a person has to mend a file; until then the block takes no messages, and ``config``
    is not what the file says."""

    name: str
    status: PulseState
    config: BlockConfig
    created_at: datetime
    conversations: int
    current_task: str | None = None
    error: str | None = None
    problem: str = ""


class ArchivedBlockItem(Out, frozen=True, kw_only=True):
    """A block that was put away."""

    name: str
    archive: str
    archived_at: datetime


class BlockStates(Out, frozen=True, kw_only=True):
    """The blocks."""

    blocks: tuple[BlockState, ...]
    archived: tuple[ArchivedBlockItem, ...] = ()


class Health(Out, frozen=True, kw_only=True):
    """The process lives."""

    status: Literal["ok"]


class Readiness(Out, frozen=True, kw_only=True):
    """Whether messages are taken, answered and stored. ``checks`` says of each part how it is: ``ok``, ``missing``, or
    ``failing``, when it is there and cannot work, such as memory with a full disk."""

    status: Literal["ready", "not_ready"]
    checks: dict[str, str]


# Events of a turn --------------------------------------------------------------------------------------------


class TextDeltaData(Out, frozen=True, kw_only=True):
    """``text-delta``: the answer goes on with this."""

    content: str


class TextResetData(Out, frozen=True, kw_only=True):
    """``text-reset`` (an extension): the whole text of the answer so far is this; what was beyond it does not count."""

    content: str


class StatusData(Out, frozen=True, kw_only=True):
    """``status`` (an extension): how the agent stands, such as its ``hud``, where a plugin shows that; ``data`` for
    programs, ``text`` for people. ``waiting`` says that the message is behind a turn that a person has to decide about:
    ``data.approval`` is the question, as in ``approval-request``, and a decision goes to the path ``data.decision``."""

    name: str
    data: dict[str, Any] = {}
    text: str = ""


class ToolCallData(Out, frozen=True, kw_only=True):
    """``tool-call``: the model calls a tool."""

    id: str
    name: str
    arguments: dict[str, Any]


class ToolOutputData(Out, frozen=True, kw_only=True):
    """``tool-result``: what the tool returned. With ``metadata.stored``, a StoredResult, that is the beginning and the
    end of it, and ``trunkline results show`` prints what is kept, by the ``id`` there; without an id nothing more could
    be kept."""

    id: str
    output: str
    metadata: dict[str, Any] = {}


class ToolFailureData(Out, frozen=True, kw_only=True):
    """``tool-result``: what went wrong, in the tool's words for the model; ``metadata`` as with what it returned."""

    id: str
    error: str
    metadata: dict[str, Any] = {}


class ApprovalRequestData(Out, frozen=True, kw_only=True):
    """``approval-request`` (an extension): a person has to decide about a call, with this hash, until ``expires_at``.
    ``detail`` is what to show them, ``approval`` the id under ``/api/approvals``."""

    id: str
    name: str
    arguments: dict[str, Any]
    hash: str
    question: str
    approval: str | None = None
    asked_at: datetime | None = None
    expires_at: datetime | None = None
    detail: ApprovalDetail | None = None


class ApprovalSettledData(Out, frozen=True, kw_only=True):
    """``approval-settled`` (an extension): the call was decided about, by whom. ``deadline``: nobody did in time.
    ``answer`` is what a question was answered with."""

    id: str
    allow: bool
    by: str
    scope: ApprovalScope = "once"
    answer: str = ""


class DoneData(Out, frozen=True, kw_only=True):
    """``done``: the turn is over and stored; ``message_id`` is the stored assistant message, if there is one."""

    finish_reason: FinishReason
    usage: UsageCount
    message_id: str | None = None
