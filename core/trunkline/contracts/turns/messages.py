"""The inbox items that begin, steer and end a turn, and the facts that it publishes."""

from typing import Any, Literal

import msgspec

from trunkline.contracts.agents.messages import AgentReport
from trunkline.contracts.approvals.messages import ApprovalScope
from trunkline.contracts.conversations.messages import ForkedFrom, Message, Usage
from trunkline.contracts.models.constraints import ResponseFormat, ToolChoice
from trunkline.contracts.tools.messages import ToolSchema
from trunkline.contracts.turns.lanes import Lane, Trigger
from trunkline.contracts.turns.parent_turn import ParentTurn
from trunkline.errors import ErrorCode
from trunkline_bus import Payload

FinishReason = Literal["stop", "tool_calls", "max_tokens", "content_filter", "cancelled", "stopped", "error"]
"""The reason a turn or a model call ended."""


class TurnOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of a turn. ``message_id`` is its assistant message. If ``code`` is set the turn failed, and ``detail`` is
    the cause for the owner, without secrets and addresses. ``context`` is the number of input tokens of the last model
    call, 0 if the provider does not count them. ``cost`` is in millionths of a US dollar; None if a model has no price.
    ``answered_by`` is the model that answered last (``adapter/model``), "" if none did.
    """

    reason: FinishReason
    message_id: str | None = None
    usage: Usage = Usage()
    code: ErrorCode | None = None
    detail: str = ""
    context: int = 0
    cost: int | None = None
    answered_by: str = ""


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """The step at which a forked turn branches off from another turn. If ``says`` is true, the request's message is a
    new message of a person and follows the transcript before that step. Otherwise the request's message repeats the
    last message of that transcript.
    """

    origin: ForkedFrom
    says: bool = False


class ResponseRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request of OpenAI's Responses API that a turn answers. Only the gateway reads it.

    ``created_at`` is the time of the request, in Unix seconds. Without ``stored`` the response cannot be retrieved by
    its id. ``background`` is true if the client did not wait for the response. ``previous`` is the id of the response
    that this one continues, None if there is none. ``parameters`` are the parameters of the request, as the response
    repeats them.
    """

    created_at: int = 0
    stored: bool = True
    background: bool = False
    previous: str | None = None
    parameters: dict[str, Any] = {}


class TurnRequested(Payload, frozen=True, kw_only=True, tag="turn.requested.v1"):
    """A message that the gateway accepted and that a turn answers.

    ``message`` is the person's message, sent by the identity ``actor`` through ``channel``. ``trigger`` is the cause of
    the turn: ``message`` if a person sent it, ``agent`` if another turn did. ``preceding`` holds the client's messages
    before ``message``, such as the results of its tools; if the client sends results and no text, the last result is
    ``message``. ``preceding`` is unset if there are none, so that older records keep their bytes. ``history`` replaces
    the stored conversation, for a client that sends its whole transcript, as OpenAI's clients do. ``begins`` is true if
    this message starts the conversation, so that its id was unknown before. ``one_shot`` is true if the client gives no
    sign that it will continue the conversation (see ``AppendConversation``); unset otherwise. If ``fork`` is set, the
    monitor takes the transcript from the journal of the turn that ``fork`` names. ``lane`` is the turn's priority;
    unset if it follows from ``trigger`` (see ``lane_of``), so that older records keep their bytes.

    ``client_tools`` are tools that the client runs: a call to one ends the turn with finish reason ``tool_calls``.
    ``permissions`` are the scopes of the sender's credential (``tools:*``, ``memory:/path/*``), which bound the
    turn's tool calls; unset in a record of an earlier version. ``token_id`` is the access token that sent the message,
    unset if there is none; when the token is revoked, the turn is cancelled.

    ``model`` (``adapter/model``), ``max_tokens`` (of one answer), ``temperature`` and ``shows`` hold for this turn
    only; None selects the configured value. ``parameters`` are further parameters of the model (``top_p``); those that
    the model does not take are not sent. ``instructions`` is a system message for this turn only, which the
    conversation does not store. ``tool_choice`` holds for the turn's first model call and names tools of
    the client; ``response_format`` holds for every model call. These four are unset if the client gives none. ``shows``
    is the channel's description of the form in which a person sees an answer; unset if the channel gives none.
    ``response`` is set if the turn answers a request of OpenAI's Responses API. ``parent`` is set if the turn is the
    task of an agent that works for another turn.
    ``traceparent`` is the W3C trace context of the request.
    """

    turn: str
    block: str
    conversation: str
    message: Message
    actor: str
    channel: str
    permissions: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    token_id: str | msgspec.UnsetType = msgspec.UNSET
    trigger: Trigger = "message"
    lane: Lane | msgspec.UnsetType = msgspec.UNSET
    history: tuple[Message, ...] | None = None
    preceding: tuple[Message, ...] | msgspec.UnsetType = msgspec.UNSET
    begins: bool = False
    one_shot: bool | msgspec.UnsetType = msgspec.UNSET
    client_tools: tuple[ToolSchema, ...] = ()
    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    parameters: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    instructions: str | msgspec.UnsetType = msgspec.UNSET
    tool_choice: ToolChoice | msgspec.UnsetType = msgspec.UNSET
    response_format: ResponseFormat | msgspec.UnsetType = msgspec.UNSET
    shows: str | msgspec.UnsetType = msgspec.UNSET
    response: ResponseRequest | msgspec.UnsetType = msgspec.UNSET
    traceparent: str | None = None
    fork: Fork | None = None
    parent: ParentTurn | msgspec.UnsetType = msgspec.UNSET

    @property
    def budget_turn(self) -> str:
        """The turn toward whose budget this turn counts: the one at the top of its family."""
        return self.parent.root if isinstance(self.parent, ParentTurn) else self.turn


class TurnSteered(Payload, frozen=True, kw_only=True, tag="turn.steered.v1"):
    """A message for a running turn, delivered to the model at the turn's next step. If the turn has ended,
    ``request`` starts a new turn.
    """

    turn: str
    request: TurnRequested


class TurnCancelRequested(Payload, frozen=True, kw_only=True, tag="turn.cancel.v1"):
    """A request to end a turn. ``now`` interrupts the model call and the tools; ``after_step`` lets the running step
    finish. ``of_block`` is true if the whole block was stopped; unset if only this turn was.
    """

    turn: str
    by: str
    mode: Literal["now", "after_step"] = "now"
    of_block: bool | msgspec.UnsetType = msgspec.UNSET


class ApprovalDecided(Payload, frozen=True, kw_only=True, tag="turn.approval.v1"):
    """A person's decision about a parked call. The decision holds only for the call whose hash is ``call_hash``.
    ``by`` is ``deadline`` if no decision was made in time. ``scope`` extends an approval to calls like this one.

    For a question, ``allow`` is true and ``answer`` is the answer; ``allow`` is false if the person declines to
    answer. An answer approves no call: the hash of a question never equals the hash of a call.

    ``lane`` is the lane of the turn, which the gateway sets; unset in a record of an earlier version.
    """

    turn: str
    call: str
    call_hash: str
    allow: bool
    by: str
    scope: ApprovalScope = "once"
    answer: str = ""
    lane: Lane | msgspec.UnsetType = msgspec.UNSET


class AgentReported(Payload, frozen=True, kw_only=True, tag="turn.agent-report.v1"):
    """The task of an agent has ended, and ``turn`` started it. ``call`` is the key of the call that waits for it.
    ``lane`` is the lane of that turn, unset if the gateway does not know it.
    """

    turn: str
    call: str
    report: AgentReport
    lane: Lane | msgspec.UnsetType = msgspec.UNSET


InboxItem = TurnRequested | TurnSteered | TurnCancelRequested | ApprovalDecided | AgentReported


class TurnFact(Payload, frozen=True, kw_only=True, tag="turn.fact.v1"):
    """A turn started, parked or finished. Statistics, memory and dashboards consume these facts. ``reason`` is set
    for a finished turn.

    ``model`` (``adapter/model``) answered, and ``context`` are the input tokens of its last call; 0 if the client sent
    its whole transcript. ``summary_record`` is the id of the summary record that the call used, "" for none. These
    three are set for a finished turn. ``lane`` is the turn's lane; unset for ``interactive``.
    """

    turn: str
    block: str
    conversation: str
    fact: Literal["started", "parked", "finished"]
    reason: FinishReason | None = None
    lane: Lane | msgspec.UnsetType = msgspec.UNSET
    model: str = ""
    context: int = 0
    summary_record: str = ""
    detail: dict[str, Any] = {}
