"""The public schemas of ``/conversations`` and ``/api``: closed on output, tolerant on input.

Every response body of these paths is one of these structs, so it has no undocumented fields.
``openapi.py`` generates the OpenAPI document from them. A field with a default is optional and is left out of a
response at its default.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from trunkline.contracts.approvals.messages import ApprovalDetail, ApprovalScope, Settlement
from trunkline.contracts.audit.messages import AuditDecision, AuditEvent
from trunkline.contracts.auth.identity import IdentityRecord, IdentityStatus, IdentityType
from trunkline.contracts.auth.messages import AccessToken
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.share_policy import ShareAction
from trunkline.contracts.blocks.messages import BlockConfig, BlockStatusName
from trunkline.contracts.models.listing import AdapterListing
from trunkline.contracts.policies.messages import Policy
from trunkline.contracts.tools.messages import Effect
from trunkline.contracts.turns.context_view import SentPart
from trunkline.contracts.turns.messages import FinishReason
from trunkline.errors import ErrorCode


class Out(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of all response schemas."""


class In(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all request schemas; unknown fields are ignored."""


# Sign-in ----------------------------------------------------------------------------------------------------


class PairRequest(In, frozen=True, kw_only=True):
    """A code of ``trunkline pair``, and the form in which the caller gets its token: ``cookie`` for a browser, or
    ``bearer`` in the reply. ``label`` names the browser or program in the list of tokens.
    """

    code: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    kind: Literal["cookie", "bearer"] = msgspec.field(default="bearer", name="as")
    label: str = ""


class PairReply(Out, frozen=True, kw_only=True):
    """The identity that is signed in. ``token`` is only in the reply to ``as: bearer``, and is shown once."""

    identity: str
    scope: str
    expires: datetime | None = None
    token: str | None = None


class Me(Out, frozen=True, kw_only=True):
    """The caller. ``kind`` is the credential: ``home`` is the token of the home, ``bearer`` and ``session`` are access
    tokens, ``plugin`` is a credential of a plugin. ``blocks`` are the only blocks that the token reaches.
    """

    id: str
    type: str
    display_name: str
    scope: str
    kind: Literal["home", "bearer", "session", "plugin"]
    expires: datetime | None = None
    blocks: tuple[str, ...] | None = None


class SignedOut(Out, frozen=True, kw_only=True):
    """The end of an access token, if there was one. The token of the home cannot be signed out."""

    signed_out: bool


# Administration ---------------------------------------------------------------------------------------------


class NewIdentity(In, frozen=True, kw_only=True):
    """A person or program to let in. Nobody but the built-in owner has the type ``owner``."""

    id: str
    type: IdentityType = "collaborator"
    display_name: str = ""


class IdentityChanges(In, frozen=True, kw_only=True):
    """Changes of an identity. What is not named stays. ``revoked`` is final."""

    status: IdentityStatus | None = None
    display_name: str | None = None


class IdentityStates(Out, frozen=True, kw_only=True):
    """The identities, the owner first."""

    identities: tuple[IdentityRecord, ...]


class TokenRequest(In, frozen=True, kw_only=True):
    """An access token to issue. Without ``expires`` it does not expire; ``blocks`` are the only blocks that it reaches,
    null for all that its identity may use.
    """

    identity: str
    scope: TokenScope = TokenScope.CHAT
    label: str = ""
    expires: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    blocks: tuple[str, ...] | None = None


class TokenStates(Out, frozen=True, kw_only=True):
    """The access tokens, the oldest first, also those that ended a short time ago."""

    tokens: tuple[AccessToken, ...]


class IssuedToken(Out, frozen=True, kw_only=True):
    """A new access token. ``text`` is what the caller presents. It is in this answer only, and stored nowhere."""

    token: AccessToken
    text: str


class RevokedToken(Out, frozen=True, kw_only=True):
    """The end of an access token, and the number of turns that it started and that are cancelled."""

    id: str
    turns: int


class ShareRequest(In, frozen=True, kw_only=True):
    """The action that a block is shared for. It includes those before it: read, chat, approve, operate."""

    action: ShareAction


class BlockShare(Out, frozen=True, kw_only=True):
    """A policy that shares a block. ``identity`` is its subject, which may also be ``*`` or ``type:NAME``; ``action``
    may also be ``*``. ``resource`` is ``block:NAME``, or a pattern that matches further blocks. ``is_conditional`` is
    true if the policy has conditions, such as hours of the day.
    """

    block: str
    identity: str
    action: str
    policy: str
    resource: str
    is_conditional: bool = False


class BlockShareList(Out, frozen=True, kw_only=True):
    """The policies that share a block. Denials are not among them; they win over all of these."""

    shared_with: tuple[BlockShare, ...]


class AuditItem(Out, frozen=True, kw_only=True):
    """An entry of the audit log. The fields have the meaning of those in ``trunkline audit --json``."""

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
    count: int | None = None
    first: datetime | None = None


class AuditPage(Out, frozen=True, kw_only=True):
    """A page of the audit log, the newest entry first. ``total`` is the number of entries that match."""

    entries: tuple[AuditItem, ...]
    total: int


class PanicState(Out, frozen=True, kw_only=True):
    """Reports whether everything is stopped, since when (ISO 8601) and by whom."""

    engaged: bool
    at: str = ""
    by: str = ""


class PanicReport(Out, frozen=True, kw_only=True):
    """The stop, the kinds of workers that have ended all that they ran, and the workers that have not answered."""

    engaged: bool
    stopped: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


# Requests ----------------------------------------------------------------------------------------------------


SAID = msgspec.Meta(extra_json_schema={"pattern": r"\S"})
"""For the document: a text with a character that is no space."""

SOME = msgspec.Meta(extra_json_schema={"minItems": 1})
"""For the document: a list that is not empty. The gateway refuses both with reasons of its own."""


class NewMessage(In, frozen=True, kw_only=True):
    """A message.

    A request with the same ``metadata.client_message_id`` is a repeat of the same message. ``metadata.block`` names the
    block of a new conversation.
    """

    content: Annotated[str, SAID]
    metadata: dict[str, Any] = {}


class ForkRequest(In, frozen=True, kw_only=True):
    """A request to run a turn again from its model call number ``step``, counted from 0.

    The model, or the message at that step, may be another one.
    """

    step: Annotated[int, msgspec.Meta(ge=0)]
    model: str | None = None
    content: str | None = None


class CancelRequest(In, frozen=True, kw_only=True):
    """The way to end a turn: at once, or after the current step."""

    mode: Literal["now", "after_step"] = "now"


class DecisionRequest(In, frozen=True, kw_only=True):
    """A decision about a parked call.

    ``hash`` is the hash in the approval request. With ``scope`` an approval also covers similar
    calls, in this conversation or always. A question (``detail.kind``) takes an ``answer`` and needs no
    ``allow``; with ``allow`` false it is left unanswered.
    """

    hash: str
    allow: bool | None = None
    scope: ApprovalScope = "once"
    answer: str = ""


class NewBlock(In, frozen=True, kw_only=True):
    """A block to create."""

    name: str
    config: BlockConfig = BlockConfig()


class ConversationChanges(In, frozen=True, kw_only=True):
    """A title for a conversation; null restores the title that is made from the first message."""

    title: str | None


class ConversationModel(In, frozen=True, kw_only=True):
    """The model of a conversation, as ``adapter/model``; null removes the choice."""

    model: Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1, "maxLength": 200})] | None


class CompactionOptions(In, frozen=True, kw_only=True):
    """The options of a compaction: ``focus`` is what the summary must keep in particular, "" for nothing. With
    ``rebirth`` all messages are summarised, and the summary is written to ``memory.md`` of the block."""

    focus: str = ""
    rebirth: bool = False


class BlockChanges(In, frozen=True, kw_only=True):
    """Settings of a block to change, as a JSON merge patch (RFC 7396) of its ``config``: null removes a
    setting, and settings that are not named stay."""

    config: dict[str, Any]


class StopRequest(In, frozen=True, kw_only=True):
    """The way to stop a block: its turns are cancelled, or with ``finish`` run to their end."""

    finish: bool = False


class ResetRequest(In, frozen=True, kw_only=True):
    """The extent of a reset: the block loses its conversations and everything that its agent wrote and
    learned; with ``hard`` also its documents, identity, sliders and workspace."""

    hard: bool = False


# Responses ---------------------------------------------------------------------------------------------------


class Error(Out, frozen=True, kw_only=True):
    """Every error: a fixed code and its fixed sentence. The header ``X-Correlation-ID`` leads to the log.

    For an invalid request, or a block that does not exist, ``metadata.field`` is a JSON pointer into the body
    or the name of a parameter or header, and ``metadata.reason`` describes the error. For a missing or wrong
    credential, ``metadata.reason`` states where to send it. For a failed turn, ``metadata.detail`` gives the
    reason to the owner: one line without secrets and addresses.
    """

    code: ErrorCode
    message: str
    metadata: dict[str, Any] = {}


class ModelLists(Out, frozen=True, kw_only=True):
    """The models of each configured adapter, or why they could not be listed."""

    adapters: tuple[AdapterListing, ...]


class AnsweringModel(Out, frozen=True, kw_only=True):
    """The model that answers the next message of a conversation.

    ``model`` is ``adapter/model``, or the adapter alone if no model is configured; ``context_window`` is in tokens, 0
    if not configured. ``chosen`` is true if the model was chosen for this conversation. ``problem`` says why no model
    answers, "" if one does.
    """

    model: str
    chosen: bool = False
    context_window: int = 0
    problem: str = ""


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
    """A message. Messages with the role ``tool`` are only returned with ``include=tools``."""

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
    """A call that waits for a person's decision, or was decided.

    ``detail`` is the content to show to the person: a diff, a command, a message, or the arguments. Send a decision
    to ``/api/turns/{turn}/calls/{call}/decision`` with this ``hash``.
    """

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
    """Approvals, the oldest first."""

    approvals: tuple[ApprovalState, ...]


class GrantStates(Out, frozen=True, kw_only=True):
    """The grants, as policies."""

    grants: tuple[Policy, ...]


class ConversationContext(Out, frozen=True, kw_only=True):
    """The parts of what a model was sent in the last model call of a turn.

    ``step`` is the number of that call, from 0. ``input_tokens`` and ``cached_tokens`` are the vendor's own counts, 0
    if the vendor counted none. The tokens of the parts are estimates that add up to ``input_tokens`` if that is known.
    """

    turn_id: str
    step: int
    model: str
    context_window: int
    input_tokens: int
    cached_tokens: int
    parts: tuple[SentPart, ...]


class TurnDetail(Out, frozen=True, kw_only=True):
    """The state of a turn."""

    id: str
    conversation_id: str
    block: str
    status: Literal["queued", "running", "parked", "finished"]
    usage: UsageCount
    finish_reason: FinishReason | None = None
    message_id: str | None = None
    error: Error | None = None


class Accepted(Out, frozen=True, kw_only=True):
    """A message that was accepted into a running turn.

    ``otherwise`` is the turn that answers the message if the running turn ends before taking it in. That turn does not
    exist before then.
    """

    turn: str
    conversation_id: str
    message_id: str
    otherwise: str | None = None


class TicketIssued(Out, frozen=True, kw_only=True):
    """A ticket that opens one WebSocket at ``/ws`` within ``seconds``. ``protocols`` are the sub-protocols to offer in
    the handshake, for ``new WebSocket(url, protocols)``.
    """

    ticket: str
    seconds: float
    protocols: tuple[str, ...]


class BlockState(Out, frozen=True, kw_only=True):
    """A block.

    ``problem`` describes a file that a person must repair; until then the block takes no messages, and ``config`` does
    not show the settings of that file.
    """

    name: str
    status: BlockStatusName
    config: BlockConfig
    created_at: datetime
    conversations: int
    current_task: str | None = None
    error: str | None = None
    problem: str = ""


class ArchivedBlockItem(Out, frozen=True, kw_only=True):
    """An archived block."""

    name: str
    archive: str
    archived_at: datetime


class BlockStates(Out, frozen=True, kw_only=True):
    """The blocks."""

    blocks: tuple[BlockState, ...]
    archived: tuple[ArchivedBlockItem, ...] = ()


class Health(Out, frozen=True, kw_only=True):
    """The process is alive."""

    status: Literal["ok"]


class Readiness(Out, frozen=True, kw_only=True):
    """The readiness: whether messages are accepted, answered and stored.

    ``checks`` maps each part to its state: ``ok``, ``missing``, or ``failing`` when the part runs but cannot work, such
    as memory with a full disk.
    """

    status: Literal["ready", "not_ready"]
    checks: dict[str, str]


# Events of a turn --------------------------------------------------------------------------------------------


class TextDeltaData(Out, frozen=True, kw_only=True):
    """``text-delta``: the next part of the answer."""

    content: str


class TextResetData(Out, frozen=True, kw_only=True):
    """``text-reset`` (an extension): the whole text of the answer so far. It replaces all text that was sent before."""

    content: str


class StatusData(Out, frozen=True, kw_only=True):
    """``status`` (an extension): the state of the agent, such as its ``hud``, where a plugin shows one.

    ``data`` is for programs, ``text`` for people. ``waiting`` means that the message is behind a turn that
    waits for a person: ``data.approval`` is the question, as in ``approval-request``, and a decision goes to
    the path ``data.decision``.
    """

    name: str
    data: dict[str, Any] = {}
    text: str = ""


class ToolCallData(Out, frozen=True, kw_only=True):
    """``tool-call``: the model calls a tool."""

    id: str
    name: str
    arguments: dict[str, Any]


class ToolOutputData(Out, frozen=True, kw_only=True):
    """``tool-result``: the output of the tool.

    With ``metadata.stored``, a StoredResult, the output contains only the beginning and the end of the result;
    ``trunkline results show`` prints the stored result by its ``id``. Without an id, the rest could not be stored.
    """

    id: str
    output: str
    metadata: dict[str, Any] = {}


class ToolFailureData(Out, frozen=True, kw_only=True):
    """``tool-result``: the error of the tool, as the model receives it. ``metadata`` is as in ``ToolOutputData``."""

    id: str
    error: str
    metadata: dict[str, Any] = {}


class ApprovalRequestData(Out, frozen=True, kw_only=True):
    """``approval-request`` (an extension): a person must decide about a call, with this hash, until
    ``expires_at``.

    ``detail`` is the content to show to the person, ``approval`` the id under ``/api/approvals``.
    """

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
    """``approval-settled`` (an extension): the decision about the call.

    ``by`` names the person who decided; it is ``deadline`` when the deadline passed without a decision. ``answer`` is
    the answer to a question.
    """

    id: str
    allow: bool
    by: str
    scope: ApprovalScope = "once"
    answer: str = ""


class DoneData(Out, frozen=True, kw_only=True):
    """``done``: the turn has ended and is stored; ``message_id`` is the stored assistant message, if there is
    one."""

    finish_reason: FinishReason
    usage: UsageCount
    message_id: str | None = None
