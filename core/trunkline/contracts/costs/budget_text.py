"""The sentences about budgets that people read. Pure."""

from trunkline._util.local_time import format_local_time
from trunkline.contracts.costs.messages import BudgetEvent, BudgetMeasure
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES, Sentences


def describe_budget_event(event: BudgetEvent, say: Sentences = ENGLISH_SENTENCES) -> str:
    """Return the event as sentences: whose budget, what was used of which limit, and how it opens."""
    owner = budget_owner(event.block, event.turn, say)
    used = format_amount(event.measure, event.used, say)
    if event.event == "reset":
        return say("budget.reset", by=event.by, owner=owner, used=used)
    key = "budget.used" if event.turn else f"budget.used.{event.measure}"
    limit = format_amount(event.measure, event.limit, say)
    return say(key, owner=owner, used=used, limit=limit, opening=_opening(event, say))


def budget_owner(block: str, turn: str, say: Sentences = ENGLISH_SENTENCES) -> str:
    """Return whose budget it is: "all blocks", "block main" or "this turn"."""
    if turn:
        return say("budget.owner.turn")
    return say("budget.owner.block", block=block) if block else say("budget.owner.all")


def format_amount(measure: BudgetMeasure, amount: int, say: Sentences = ENGLISH_SENTENCES) -> str:
    """Return micro-USD as ``$5.00``, with more digits if it is no whole number of cents, or a number of model calls."""
    if measure == "loops":
        return say("budget.calls.one" if amount == 1 else "budget.calls", count=f"{amount:,}")
    digits = 2 if amount % 10_000 == 0 else 4
    return f"${amount / 1_000_000:,.{digits}f}"


def _opening(event: BudgetEvent, say: Sentences) -> str:
    if event.opens_at is None:
        return say("budget.opens.turn")
    option = f" --block {event.block}" if event.block else ""
    return say("budget.opens", time=format_local_time(event.opens_at), option=option)
