"""Approvals and questions as text, for all channels: the text for the person, and the parsing of replies."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from trunkline._util.local_time import format_local_time
from trunkline._util.text import QUOTED, printable
from trunkline.contracts.approvals.messages import (
    DECIDED_BY_DEADLINE,
    Approval,
    ApprovalDetail,
    ApprovalScope,
    describe_decider,
    describe_withdrawal,
)
from trunkline.contracts.channels.channel import Gateway

_ID = r"(?P<id>[a-z2-7]{5}-[a-z2-7]{5})"
_BEGINNING = r"(?P<id>[a-z2-7]{2,5}(-[a-z2-7]{0,5})?)"
_SENTENCE = r"\s*(?P<word>approve|allow|deny)\s+{}(\s+(?P<scope>once|conversation|always))?\s*"
_WHOLE, _SHORT = (re.compile(_SENTENCE.format(id), re.IGNORECASE) for id in (_ID, _BEGINNING))
_REPLY = r"\s*answer\s+{}\s+(?P<answer>\S.*?)\s*"
_WHOLE_REPLY, _SHORT_REPLY = (
    re.compile(_REPLY.format(id), re.IGNORECASE | re.DOTALL) for id in (_ID, _BEGINNING)
)


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """A person's decision about an approval, or answer to a question. ``id`` may be the beginning of its
    id."""

    id: str
    allow: bool
    scope: ApprovalScope = "once"
    answer: str = ""


def parse_decision(text: str, *, short: bool = False) -> ApprovalDecision | None:
    """Return the decision in a message that consists only of ``approve ID [once|conversation|always]`` or
    ``deny ID``, or the answer in a message that consists only of ``answer ID`` and the answer. None for every
    other message.

    The id must be complete, so that a sentence to an agent is never taken for a decision. With ``short`` the
    beginning of an id is enough, for places where only a command can be meant.
    """
    reply = (_SHORT_REPLY if short else _WHOLE_REPLY).fullmatch(text)
    if reply is not None:
        return ApprovalDecision(reply["id"].lower(), True, answer=reply["answer"])
    found = (_SHORT if short else _WHOLE).fullmatch(text)
    if found is None:
        return None
    allow = found["word"].lower() != "deny"
    scopes: dict[str, ApprovalScope] = {"conversation": "conversation", "always": "always"}
    scope = scopes.get((found["scope"] or "").lower(), "once")
    return ApprovalDecision(found["id"].lower(), allow, scope if allow else "once")


def approval_words(question: str, detail: ApprovalDetail | msgspec.UnsetType) -> str:
    """Return the question, followed by the call that needs approval, or by the proposed answers.

    Each line of text that is not from the platform has a mark, so that no such line looks like the platform's.
    """
    if isinstance(detail, msgspec.UnsetType) or not detail.text:
        return question
    text = "\n".join(f"{QUOTED}{line}".rstrip() for line in printable(detail.text).split("\n"))
    more = f"\n(… {detail.left_out} more characters)" if detail.left_out else ""
    proposed = "".join(f"\n  {number}. {option}" for number, option in enumerate(detail.options, 1))
    return f"{question}\n{text}{more}{proposed}"


def approval_news(approval: Approval, *, before: str = "", wider_by: str = "[conversation|always]") -> str:
    """Return the text that announces the current state of an approval.

    ``before`` is a prefix for the commands ``approve`` and ``deny``, ``wider_by`` the notation of a wider
    scope.
    """
    where = f"block {approval.block}, from {approval.channel or 'here'}"
    if approval.settled is not None:
        return f"{_outcome(approval)} ({approval.id}, {where}): {approval.question}"
    if approval.detail.is_question:
        return _question_news(approval, where, before)
    begin = "Still waiting for a decision" if approval.reminded_at else "A decision is needed"
    wider = (
        f"\nconversation or always also allows later calls like this one: {approval.detail.covers}"
        if approval.detail.shape
        else ""
    )
    how = f"{before}approve {approval.id}" + (f" {wider_by}" if wider else "")
    return (
        f"{begin} ({where}), until {format_local_time(approval.expires_at)}. After that the call is denied.\n"
        f"{approval_words(approval.question, approval.detail)}{wider}\n"
        f"To answer: {how}, or {before}deny {approval.id}"
    )


def _question_news(approval: Approval, where: str, before: str) -> str:
    begin = "Still waiting for an answer" if approval.reminded_at else "An answer is needed"
    words = "your words, or a number" if approval.detail.options else "your words"
    return (
        f"{begin} ({where}), until {format_local_time(approval.expires_at)}.\n"
        f"{approval_words(approval.question, approval.detail)}\n"
        f"To answer: {before}answer {approval.id} ({words}), or {before}deny {approval.id} to leave it unanswered. "
        "An answer allows nothing."
    )


def _outcome(approval: Approval) -> str:
    settled = approval.settled
    assert settled is not None
    if settled.withdrawn:
        return f"Withdrawn, because {describe_withdrawal(settled.withdrawn, settled.by)}"
    if approval.detail.is_question:
        if settled.by == DECIDED_BY_DEADLINE:
            return "No one answered in time"
        return f"{'Answered' if settled.allow else 'Left unanswered'} by {describe_decider(settled.by)}"
    if settled.by == DECIDED_BY_DEADLINE:
        return "No one decided in time, so the call was denied"
    return f"{'Allowed' if settled.allow else 'Denied'} by {describe_decider(settled.by)}"


def chosen(answer: str, options: Sequence[str]) -> str:
    """Return the answer; for the number of a proposal, return the proposal. The exact text of a proposal has
    precedence over a number."""
    text = answer.strip()
    named = next((option for option in options if option.casefold() == text.casefold()), None)
    if named is None and text.isascii() and text.isdigit() and 0 < int(text) <= len(options):
        named = options[int(text) - 1]
    return named or text


async def submit_decision(gateway: Gateway, approval: Approval, verdict: ApprovalDecision) -> None:
    """Send a person's decision about this approval or question. Raises the gateway's errors."""
    await gateway.decide(
        approval.turn,
        approval.call,
        approval.call_hash,
        allow=verdict.allow,
        scope=verdict.scope,
        answer=chosen(verdict.answer, approval.detail.options),
    )


async def waiting_approval(gateway: Gateway, id: str) -> Approval | None:
    """Return the pending approval with this id, or the only one whose id begins so. Raises the gateway's
    errors."""
    found = [approval for approval in await gateway.waiting() if approval.id.startswith(id)]
    return found[0] if len(found) == 1 else None
