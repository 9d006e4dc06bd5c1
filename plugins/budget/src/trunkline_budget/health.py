"""The check of ``trunkline doctor``: the limits of ``trunkline.toml``."""

from collections.abc import Awaitable, Callable

from trunkline import HealthResult
from trunkline.api.costs import format_amount
from trunkline_budget.budgets import MICRO
from trunkline_budget.settings import BudgetSettings


def limits_check(settings: BudgetSettings) -> Callable[[], Awaitable[HealthResult]]:
    """Return the check."""

    async def check() -> HealthResult:
        limits = described_limits(settings)
        if not limits:
            return HealthResult(
                "ok", 'trunkline.toml sets no budget. "trunkline budget" shows changed limits.'
            )
        return HealthResult("ok", "; ".join(limits) + ".")

    return check


def described_limits(settings: BudgetSettings) -> list[str]:
    """Return the limits that are set, each as words."""
    pairs = (
        ("all blocks", "a day", settings.max_daily_spend),
        ("each block", "a day", settings.per_block.max_daily_spend),
        *((f"block {name}", "a day", own.max_daily_spend) for name, own in settings.blocks.items()),
        ("each turn", "in all", settings.max_turn_spend),
    )
    counts = (
        ("all blocks", "an hour", settings.max_loops_per_hour),
        ("each block", "an hour", settings.per_block.max_loops_per_hour),
        *((f"block {name}", "an hour", own.max_loops_per_hour) for name, own in settings.blocks.items()),
        ("each turn", "in all", settings.max_turn_loops),
    )
    spend = [
        f"{owner} at most {format_amount('spend', round(most * MICRO))} {window}"
        for owner, window, most in pairs
        if most is not None
    ]
    loops = [
        f"{owner} at most {format_amount('loops', most)} {window}"
        for owner, window, most in counts
        if most is not None
    ]
    return spend + loops
