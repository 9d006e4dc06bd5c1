"""The sentences about budgets that people read. Pure."""

from trunkline._util.local_time import format_local_time
from trunkline.contracts.costs.messages import BudgetEvent, BudgetMeasure


def describe_budget_event(event: BudgetEvent) -> str:
    """Return the event as sentences: whose budget, what was used of which limit, and how it opens."""
    owner = budget_owner(event.block, event.turn)
    used = format_amount(event.measure, event.used)
    if event.event == "reset":
        return f"{event.by} reset the budget of {owner}, of which {used} had been used."
    window = {"spend": " for today", "loops": " for this hour"}[event.measure] if not event.turn else ""
    limit = format_amount(event.measure, event.limit)
    return f"The budget of {owner}{window} is used up: {used} of {limit}. {_opening(event)}"


def budget_owner(block: str, turn: str) -> str:
    """Return whose budget it is: "all blocks", "block main" or "this turn"."""
    if turn:
        return "this turn"
    return f"block {block}" if block else "all blocks"


def format_amount(measure: BudgetMeasure, amount: int) -> str:
    """Return micro-USD as ``$5.00``, with more digits if it is no whole number of cents, or a number of model calls."""
    if measure == "loops":
        return f"{amount:,} {'call' if amount == 1 else 'calls'} of models"
    digits = 2 if amount % 10_000 == 0 else 4
    return f"${amount / 1_000_000:,.{digits}f}"


def _opening(event: BudgetEvent) -> str:
    if event.opens_at is None:
        return "The next message begins a turn with a budget of its own."
    option = f" --block {event.block}" if event.block else ""
    return (
        f'It opens at {format_local_time(event.opens_at)}, with a higher limit ("trunkline budget set"), or by '
        f'"trunkline budget reset{option}".'
    )
