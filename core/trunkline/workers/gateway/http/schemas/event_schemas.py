"""The data of the events of a turn, as server-sent events have them."""

from datetime import datetime
from typing import Any

from trunkline.contracts.approvals.messages import ApprovalDetail, ApprovalScope
from trunkline.contracts.turns.messages import FinishReason
from trunkline.workers.gateway.http.schemas.schema_base import Out
from trunkline.workers.gateway.http.schemas.turn_schemas import UsageCount


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


class ToolProgressData(Out, frozen=True, kw_only=True):
    """``tool-progress`` (an extension): the call is running.

    ``note`` is a line about its progress. ``output`` is live output of its programs, from character ``offset`` of all
    their output on; output that came faster than it is sent is missing. ``tool-result`` has the result.
    """

    id: str
    note: str = ""
    offset: int = 0
    output: str = ""


class ToolOutputData(Out, frozen=True, kw_only=True):
    """``tool-result``: the output of the tool.

    With ``metadata.stored``, a StoredResult, the output contains only the beginning and the end of the result;
    ``trunkline results show`` prints the stored result by its ``id``. Without an id, the rest could not be stored.
    ``metadata.files`` are the files that the call gave to the person, with their paths in memory.
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
