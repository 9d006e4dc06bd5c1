"""Approvals and questions as text, for all channels: the text for the person, and the parsing of replies."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from trunkline._util.local_time import format_local_time
from trunkline._util.text import QUOTED, printable
from trunkline.contracts.approvals.messages import (
    CANCELLED_BY_PANIC,
    DECIDED_BY_DEADLINE,
    Approval,
    ApprovalDetail,
    ApprovalScope,
    describe_decider,
)
from trunkline.contracts.channels.channel import Gateway
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES, Sentences

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


def approval_words(
    question: str, detail: ApprovalDetail | msgspec.UnsetType, say: Sentences = ENGLISH_SENTENCES
) -> str:
    """Return the question, followed by the call that needs approval, or by the proposed answers.

    Each line of text that is not from the platform has a mark, so that no such line looks like the platform's.
    """
    asked = say.translate(question)
    if isinstance(detail, msgspec.UnsetType) or not detail.text:
        return asked
    lines = [f"{QUOTED}{line}".rstrip() for line in printable(detail.text).split("\n")]
    if detail.left_out:
        lines.append(say("approval.left_out", count=detail.left_out))
    lines += [f"  {number}. {option}" for number, option in enumerate(detail.options, 1)]
    return "\n".join([asked, *lines])


def approval_news(
    approval: Approval,
    *,
    before: str = "",
    wider_by: str = "[conversation|always]",
    say: Sentences = ENGLISH_SENTENCES,
) -> str:
    """Return the text that announces the current state of an approval.

    ``before`` is a prefix for the commands ``approve`` and ``deny``, ``wider_by`` the notation of a wider
    scope, ``say`` the language.
    """
    where = (
        say("approval.where", block=approval.block, channel=approval.channel)
        if approval.channel
        else say("approval.where.here", block=approval.block)
    )
    if approval.settled is not None:
        question = say.translate(approval.question)
        return say(
            "approval.settled",
            outcome=_outcome(approval, say),
            id=approval.id,
            where=where,
            question=question,
        )
    time, begin = format_local_time(approval.expires_at), "waiting" if approval.reminded_at else "needed"
    kind = "question" if approval.detail.is_question else "approval"
    lines = [
        say(f"{kind}.{begin}", where=where, time=time),
        approval_words(approval.question, approval.detail, say),
    ]
    deny = f"{before}deny {approval.id}"
    if approval.detail.is_question:
        how = "question.how.options" if approval.detail.options else "question.how"
        return "\n".join([*lines, say(how, answer=f"{before}answer {approval.id}", deny=deny)])
    approve = f"{before}approve {approval.id}"
    if approval.detail.shape:
        lines.append(say("approval.wider", calls=approval.detail.covers))
        approve = f"{approve} {wider_by}"
    return "\n".join([*lines, say("approval.how", approve=approve, deny=deny)])


def decision_news(approval: Approval, verdict: ApprovalDecision, say: Sentences) -> str:
    """Return what to say to whoever has just decided about an approval or answered a question."""
    if approval.detail.is_question:
        key = "decision.answered" if verdict.allow else "decision.unanswered"
        return say(f"{key}.question", question=approval.detail.text)
    key = "decision.allowed" if verdict.allow else "decision.denied"
    return say(key, question=say.translate(approval.question))


def _outcome(approval: Approval, say: Sentences) -> str:
    settled = approval.settled
    assert settled is not None
    by = describe_decider(settled.by, say)
    if settled.withdrawn:
        panic = settled.by == CANCELLED_BY_PANIC
        return say(f"outcome.withdrawn.{'panic' if panic else settled.withdrawn}", by=by)
    if approval.detail.is_question:
        if settled.by == DECIDED_BY_DEADLINE:
            return say("outcome.unanswered.late")
        return say("outcome.answered" if settled.allow else "outcome.unanswered", by=by)
    if settled.by == DECIDED_BY_DEADLINE:
        return say("outcome.late")
    return say("outcome.allowed" if settled.allow else "outcome.denied", by=by)


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
