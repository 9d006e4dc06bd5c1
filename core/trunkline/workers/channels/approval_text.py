"""Approvals and questions as text, for all channels: the text for the person, and the parsing of replies."""

import re
from collections.abc import Mapping, Sequence
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
_SENTENCE = r"\s*(?P<word>\w+)\s+{}(\s+(?P<scope>\w+))?\s*"
_WHOLE, _SHORT = (re.compile(_SENTENCE.format(id), re.IGNORECASE) for id in (_ID, _BEGINNING))
_REPLY = r"\s*(?P<word>\w+)\s+{}\s+(?P<answer>\S.*?)\s*"
_WHOLE_REPLY, _SHORT_REPLY = (
    re.compile(_REPLY.format(id), re.IGNORECASE | re.DOTALL) for id in (_ID, _BEGINNING)
)


_SCOPES: Mapping[str | None, ApprovalScope] = {
    "once": "once",
    "conversation": "conversation",
    "always": "always",
}


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """A person's decision about an approval, or answer to a question. ``id`` may be the beginning of its
    id."""

    id: str
    allow: bool
    scope: ApprovalScope = "once"
    answer: str = ""


def parse_decision(
    text: str, *, short: bool = False, say: Sentences = ENGLISH_SENTENCES
) -> ApprovalDecision | None:
    """Return the decision in a message that consists only of ``approve ID [once|conversation|always]`` or
    ``deny ID``, or the answer in a message that consists only of ``answer ID`` and the answer. None for every
    other message.

    The words are English or those of ``say``, as the entry ``approval.words`` lists them: ``erlauben ID immer``. The id
    must be complete, so that a sentence to an agent is never taken for a decision. With ``short`` the
    beginning of an id is enough, for places where only a command can be meant.
    """
    words = say.words("approval.words")
    reply = (_SHORT_REPLY if short else _WHOLE_REPLY).fullmatch(text)
    if reply is not None and words.read(reply["word"]) == "answer":
        return ApprovalDecision(reply["id"].lower(), True, answer=reply["answer"])
    found = (_SHORT if short else _WHOLE).fullmatch(text)
    if found is None:
        return None
    word, scope = words.read(found["word"]), _SCOPES.get(words.read(found["scope"] or "once"))
    if word not in ("approve", "deny") or scope is None:
        return None
    allow = word == "approve"
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
    wider_by: str = "",
    say: Sentences = ENGLISH_SENTENCES,
) -> str:
    """Return the text that announces the current state of an approval.

    ``before`` is a prefix for the commands ``approve`` and ``deny``, such as a slash. With one, these are names of
    commands and in English; else they are words of the language ``say``. ``wider_by`` is the notation of a wider scope
    if it is not ``[conversation|always]``.
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
    words = (ENGLISH_SENTENCES if before else say).words("approval.words").shown
    deny = f"{before}{words['deny']} {approval.id}"
    if approval.detail.is_question:
        how = "question.how.options" if approval.detail.options else "question.how"
        return "\n".join([*lines, say(how, answer=f"{before}{words['answer']} {approval.id}", deny=deny)])
    approve = f"{before}{words['approve']} {approval.id}"
    if approval.detail.shape:
        lines.append(say("approval.wider", calls=approval.detail.covers, **words))
        approve = f"{approve} {wider_by or '[{conversation}|{always}]'.format(**words)}"
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
