"""Approvals: what a person is asked before a call may run, where it stands, and what is said when its time is over."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from trunkline.contracts.policies.messages import Policy
from trunkline_bus import Payload, key_of

ApprovalScope = Literal["once", "conversation", "always"]
"""How far a yes reaches: this call, calls like it in this conversation, or in this block from now on."""

DECIDED_BY_DEADLINE = "deadline"
"""Who has decided when nobody did in time."""

WithdrawalReason = Literal["", "cancelled", "stopped", "block", "ended"]
"""Why nobody is asked any more though nobody decided: the turn was cancelled, or stopped after its step; the block was
stopped; or the turn ended otherwise. Empty where somebody decided, or did not in time."""

CANCELLED_BY_PANIC = "panic"
"""Who ends turns when everything is stopped."""

_PLACES = {"cli": "on the command line", "terminal": "in the terminal"}


def describe_decider(by: str) -> str:
    """Who decided, in words. A channel speaks for the owner, or knows people by names of their own."""
    if by == "owner":
        return "the owner"
    kind, _, name = by.partition(":")
    return f"the owner {_PLACES.get(name, f'in {name}')}" if kind == "channel" else by


def describe_withdrawal(why: WithdrawalReason, by: str) -> str:
    """Why a question was withdrawn, and who saw to that, in words: what follows a ``because``."""
    if by == CANCELLED_BY_PANIC:
        return "everything was stopped by panic"
    match why:
        case "block":
            return f"the block was stopped by {describe_decider(by)}"
        case "cancelled" | "stopped":
            return f"the turn was {why} by {describe_decider(by)}"
        case _:
            return "its turn ended"


class ApprovalDetail(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A description of what a call would do, for a person to read: nothing in it is obeyed by a terminal, and its
    length is bounded.

    ``text`` is a unified diff, a command with its arguments, a message with whom it goes to, or the arguments one by
    one. ``left_out`` is how many characters of it are not shown. ``shape`` is the key of the tool and those arguments
    that a wider yes is bound to, ``covers`` the same in words; without a shape a yes can only be for this one call.
    ``tool`` is the tool's name, by whatever other one it was called, ``effect`` its effect.

    With the kind ``question`` nothing is to be allowed: ``text`` is what the call wants to know, ``options`` are
    answers that it proposes, and what is waited for is a person's own words or one of these.
    """

    kind: Literal["diff", "command", "message", "arguments", "question"] = "arguments"
    text: str = ""
    left_out: int = 0
    shape: str = ""
    covers: str = ""
    tool: str = ""
    effect: str = ""
    options: tuple[str, ...] = ()

    @property
    def is_question(self) -> bool:
        """Report whether an answer is wanted, and not a yes or no."""
        return self.kind == "question"


class Settlement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The decision about an approval, its author and its time. ``by`` is an identity's id, or ``deadline`` when
    nobody decided in time. A question was answered with ``answer``, or left without one (``allow`` is false).
    With ``withdrawn`` nobody decided: ``by`` is then who ended the turn, "" where nobody did.
    """

    allow: bool
    by: str
    at: datetime
    scope: ApprovalScope = "once"
    answer: str = ""
    withdrawn: WithdrawalReason = ""


class Approval(Payload, frozen=True, kw_only=True, omit_defaults=True, tag="approval.state.v1"):
    """A call that waits for a person, or did: ``settled`` says how that ended.

    ``id`` is as ``approval_id`` makes it. ``channel`` and ``actor`` are of the turn. A decision names ``turn``,
    ``call`` and ``call_hash``, which binds it to exactly this tool and these arguments.
    """

    id: str
    turn: str
    call: str
    call_hash: str
    tool: str
    block: str
    conversation: str
    channel: str
    actor: str
    question: str
    asked_at: datetime
    expires_at: datetime
    detail: ApprovalDetail = ApprovalDetail()
    reminded_at: datetime | None = None
    settled: Settlement | None = None


def approval_id(turn: str, call: str, asked_at: datetime) -> str:
    """The id of a question, such as ``k3v7q-x2pzd``: short enough to be typed, and no word of any language.

    A call that is asked about again is another question.
    """
    key = key_of("approval", turn, call, asked_at.isoformat())
    return f"{key[:5]}-{key[5:10]}"


class ApprovalDue(Payload, frozen=True, kw_only=True, tag="approval.due.v1"):
    """The time has come to remind people of an approval, or to give it up (``expire``)."""

    id: str
    turn: str
    call: str
    asked_at: datetime
    what: Literal["remind", "expire"]


class ListApprovals(Payload, frozen=True, kw_only=True, tag="approval.list.v1"):
    """Ask for the approvals that wait, of one block or all; with ``settled`` those of the last hour too."""

    block: str | None = None
    settled: bool = False


class ApprovalList(Payload, frozen=True, kw_only=True, tag="approval.listed.v1"):
    """Approvals, the one that was asked first in front."""

    approvals: tuple[Approval, ...]


class GetApproval(Payload, frozen=True, kw_only=True, tag="approval.get.v1"):
    """Ask for one approval by its id, or by as much of it as tells it from the others."""

    id: str


class ListGrants(Payload, frozen=True, kw_only=True, tag="approval.list-grants.v1"):
    """Ask what was allowed for longer than one call."""


class GrantList(Payload, frozen=True, kw_only=True, tag="approval.grants.v1"):
    """Policies that people's decisions made, by their ids."""

    grants: tuple[Policy, ...]


class ForgetGrant(Payload, frozen=True, kw_only=True, tag="approval.forget.v1"):
    """Take back what was allowed for longer than one call: calls like it are asked about again."""

    id: str


class ApprovalView(Payload, frozen=True, kw_only=True, tag="approval.view.v1"):
    """An approval with the arguments of its call as the model gave them."""

    approval: Approval
    arguments: dict[str, Any] = {}
