"""Approvals in words: what a person is shown of one, and what they may say to it. No channel's own work."""

import re
from dataclasses import dataclass

import msgspec

from trunkline.abc.channels import Gateway
from trunkline.messages.approvals import DEADLINE, Approval, ApprovalDetail, ApprovalScope, decider

_ID = r"(?P<id>[a-z2-7]{5}-[a-z2-7]{5})"
_BEGINNING = r"(?P<id>[a-z2-7]{2,5}(-[a-z2-7]{0,5})?)"
_SENTENCE = r"\s*(?P<word>approve|allow|deny)\s+{}(\s+(?P<scope>once|conversation|always))?\s*"
_WHOLE, _SHORT = (re.compile(_SENTENCE.format(id), re.IGNORECASE) for id in (_ID, _BEGINNING))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What somebody says to an approval. ``id`` may be its beginning."""

    id: str
    allow: bool
    scope: ApprovalScope = "once"


def verdict_in(text: str, *, short: bool = False) -> Verdict | None:
    """What a message decides that is nothing but ``approve ID [once|conversation|always]`` or ``deny ID``.

    The id must be whole, so that no sentence to an agent is taken for one; with ``short`` its beginning will do, where
    only a command can be meant."""
    found = (_SHORT if short else _WHOLE).fullmatch(text)
    if found is None:
        return None
    allow = found["word"].lower() != "deny"
    scopes: dict[str, ApprovalScope] = {"conversation": "conversation", "always": "always"}
    scope = scopes.get((found["scope"] or "").lower(), "once")
    return Verdict(found["id"].lower(), allow, scope if allow else "once")


def approval_words(question: str, detail: ApprovalDetail | msgspec.UnsetType) -> str:
    """The question, and below it what would be done."""
    if isinstance(detail, msgspec.UnsetType) or not detail.text:
        return question
    more = f"\n(… {detail.left_out} more characters)" if detail.left_out else ""
    return f"{question}\n{detail.text}{more}"


def approval_news(approval: Approval, *, before: str = "", wider_by: str = "[conversation|always]") -> str:
    """What to tell of an approval as it stands now. Where ``approve`` and ``deny`` alone are not how it is answered,
    ``before`` is what is written before them, and ``wider_by`` how a wider scope is said."""
    where = f"block {approval.block}, from {approval.channel or 'here'}"
    if approval.settled is not None:
        return f"{_outcome(approval)} ({approval.id}, {where}): {approval.question}"
    begin = "Still waiting for a decision" if approval.reminded_at else "A decision is needed"
    wider = (
        f"\nWith conversation or always, a yes holds for: {approval.detail.covers}"
        if approval.detail.shape
        else ""
    )
    how = f"{before}approve {approval.id}" + (f" {wider_by}" if wider else "")
    return (
        f"{begin} ({where}), until {approval.expires_at:%Y-%m-%d %H:%M} UTC.\n"
        f"{approval_words(approval.question, approval.detail)}{wider}\n"
        f"To answer: {how}, or {before}deny {approval.id}"
    )


def _outcome(approval: Approval) -> str:
    settled = approval.settled
    assert settled is not None
    if settled.by == DEADLINE:
        return "Nobody decided in time, so it was denied"
    return f"{'Allowed' if settled.allow else 'Denied'} by {decider(settled.by)}"


async def waiting_approval(gateway: Gateway, id: str) -> Approval | None:
    """The one that waits under this id, or alone under one that begins so. Raises as the gateway does."""
    found = [approval for approval in await gateway.waiting() if approval.id.startswith(id)]
    return found[0] if len(found) == 1 else None
