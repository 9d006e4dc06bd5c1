"""Approvals: the decision that a person must make before a call runs, its state, and its texts."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from trunkline.contracts.policies.messages import Policy
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES, Sentences
from trunkline_bus import Payload, key_of

ApprovalScope = Literal["once", "conversation", "always"]
"""The extent of an approval: this call, calls like it in this conversation, or calls like it in this block from now
on.
"""

DECIDED_BY_DEADLINE = "deadline"
"""The decider of an approval if no decision was made in time."""

WithdrawalReason = Literal["", "cancelled", "stopped", "block", "ended"]
"""Why an approval was withdrawn without a decision: the turn was cancelled, or stopped after its step; the block was
stopped; or the turn ended otherwise. Empty if a person decided, or if no decision was made in time.
"""

CANCELLED_BY_PANIC = "panic"
"""The name recorded as the canceller of turns that panic ended."""

_PLACES = frozenset({"cli", "terminal", "http"})
"""Channels that have words of their own."""


def describe_decider(by: str, say: Sentences = ENGLISH_SENTENCES) -> str:
    """Return the decider in words that follow ``by``. A channel decides on behalf of the owner, or knows people by
    their own ids.
    """
    if by == "owner":
        return say("by.owner")
    kind, _, name = by.partition(":")
    return say("by.owner.place", place=describe_channel(name, say)) if kind == "channel" else by


def describe_channel(name: str, say: Sentences = ENGLISH_SENTENCES) -> str:
    """Return in words through which channel somebody speaks, such as "in the terminal"."""
    return say(f"place.{name}") if name in _PLACES else say("place.other", channel=name)


def describe_withdrawal(why: WithdrawalReason, by: str) -> str:
    """Return why an approval was withdrawn, and by whom, in words that follow ``because``."""
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
    """A preview of a call for a person. Control characters are made visible, and the length is bounded.

    ``text`` is a unified diff, a command with its arguments, a message with its recipient, or the arguments one by
    one. ``left_out`` is the number of characters that are not shown. ``shape`` is a key of the tool and the arguments
    that a wider approval fixes, and ``covers`` describes them in words; without a shape an approval holds for this
    call only. ``tool`` is the tool's name even if the model used an alias, ``effect`` its effect.

    With the kind ``question`` there is no call to approve: ``text`` is the question, ``options`` are proposed
    answers, and the person answers with one of them or in other words.

    ``owner_only`` is true if nobody but the owner can approve the call, because it changes who may enter or what they
    may do.
    """

    kind: Literal["diff", "command", "message", "arguments", "question"] = "arguments"
    text: str = ""
    left_out: int = 0
    shape: str = ""
    covers: str = ""
    tool: str = ""
    effect: str = ""
    options: tuple[str, ...] = ()
    owner_only: bool = False

    @property
    def is_question(self) -> bool:
        """Report whether this is a question, which a person answers, and not a call to approve."""
        return self.kind == "question"


class Settlement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The decision about an approval, with its author and time. ``by`` is an identity's id, or ``deadline`` if no
    decision was made in time. For a question, ``answer`` is the answer, and ``allow`` is false if there is none. If
    ``withdrawn`` is set there was no decision; ``by`` then names who ended the turn, "" if it ended by itself.
    """

    allow: bool
    by: str
    at: datetime
    scope: ApprovalScope = "once"
    answer: str = ""
    withdrawn: WithdrawalReason = ""


class Approval(Payload, frozen=True, kw_only=True, omit_defaults=True, tag="approval.state.v1"):
    """A call that waits or waited for a person's decision. ``settled`` is the outcome, None while it waits.

    ``id`` is the result of ``approval_id``. ``channel`` and ``actor`` are those of the turn. A decision names
    ``turn``, ``call`` and ``call_hash``; the hash binds the decision to exactly this tool and these arguments.
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
    """Return the id of an approval, such as ``k3v7q-x2pzd``: short enough to type, and no word of any language.

    A later approval of the same call has another id.
    """
    key = key_of("approval", turn, call, asked_at.isoformat())
    return f"{key[:5]}-{key[5:10]}"


class ApprovalDue(Payload, frozen=True, kw_only=True, tag="approval.due.v1"):
    """The time to remind people of an approval has come, or its deadline (``expire``)."""

    id: str
    turn: str
    call: str
    asked_at: datetime
    what: Literal["remind", "expire"]


class ListApprovals(Payload, frozen=True, kw_only=True, tag="approval.list.v1"):
    """Ask for the approvals that wait, of one block or of all. ``settled`` adds those settled in the last hour."""

    block: str | None = None
    settled: bool = False


class ApprovalList(Payload, frozen=True, kw_only=True, tag="approval.listed.v1"):
    """Approvals, oldest first."""

    approvals: tuple[Approval, ...]


class GetApproval(Payload, frozen=True, kw_only=True, tag="approval.get.v1"):
    """Ask for one approval by its id, or by any unique prefix of it."""

    id: str


class ListGrants(Payload, frozen=True, kw_only=True, tag="approval.list-grants.v1"):
    """Ask for the grants: the permissions that outlive one call."""


class GrantList(Payload, frozen=True, kw_only=True, tag="approval.grants.v1"):
    """The grants, which are policies made from people's decisions, sorted by id."""

    grants: tuple[Policy, ...]


class ForgetGrant(Payload, frozen=True, kw_only=True, tag="approval.forget.v1"):
    """Revoke a grant. A person is asked again about calls that it covered."""

    id: str


class ApprovalView(Payload, frozen=True, kw_only=True, tag="approval.view.v1"):
    """An approval with the arguments of its call, as the model sent them."""

    approval: Approval
    arguments: dict[str, Any] = {}
