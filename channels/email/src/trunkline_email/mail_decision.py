"""Decisions about calls by mail: one line with the id of the call and a token that only the mail about it has."""

import hmac
import re
import secrets
from dataclasses import dataclass

from trunkline import RemoteFault
from trunkline.api.channel import (
    DeliveryLedger,
    Gateway,
    OutboundDelivery,
    Sentences,
    decision_news,
    parse_decision,
    submit_decision,
    waiting_approval,
)

_DECISION = re.compile(
    r"\s*(?P<word>\w+)\s+(?P<id>[a-z2-7]{5}-[a-z2-7]{5})-(?P<token>[0-9a-f]{20})"
    r"(?P<rest>(\s.*)?)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class MailDecision:
    """A decision as it was written. ``words`` are those that ``parse_decision`` reads."""

    approval: str
    token: str
    words: str


def new_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_hex(10)


def parse_mail_decision(text: str, say: Sentences) -> MailDecision | None:
    """Return the decision with which a mail begins, in English or in ``say``; None for every other mail."""
    found = _DECISION.fullmatch(text)
    if found is None or say.words("approval.words").read(found["word"]) not in ("approve", "deny", "answer"):
        return None
    id = found["id"].lower()
    words = f"{found['word']} {id}{found['rest'].rstrip()}"
    return MailDecision(id, found["token"].lower(), words)


async def decide(gateway: Gateway, ledger: DeliveryLedger, owner: str, decision: MailDecision) -> str:
    """Carry out a decision of an owner, and return what to say. Raises Unavailable if no gateway answers."""
    say, asked = gateway.sentences, await ledger.find(approval_delivery(decision.approval, owner))
    token = asked.state.details.get("token", "") if asked is not None else ""
    if asked is None or not hmac.compare_digest(token, decision.token):
        return say("email.words")
    verdict = parse_decision(decision.words, say=say)
    if verdict is None:
        return say("email.alone")
    try:
        approval = await waiting_approval(gateway, verdict.id)
        if approval is None:
            return say("email.gone", id=verdict.id)
        await _note(ledger, asked, "mail")
        await submit_decision(gateway, approval, verdict)
    except RemoteFault as fault:
        await _note(ledger, asked, "")
        return say.translate(fault.message)
    return decision_news(approval, verdict, say)


def approval_delivery(approval: str, owner: str) -> str:
    """Return the id of the delivery that asks an owner about a call."""
    return f"approval:{approval}:{owner.lower()}"


async def _note(ledger: DeliveryLedger, asked: OutboundDelivery, by: str) -> None:
    """Record that the answer to the owner's mail tells the outcome, so that no second mail does."""
    async with ledger.locked(asked.state.place):  # a post to the owner may be writing the same record
        if not asked.state.done:
            await asked.write(details={**asked.state.details, "decided": by})
