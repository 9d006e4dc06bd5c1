"""``trunkline budget``: the part that is used of each budget, what happened to them, and their reset."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from trunkline import PluginSettings
from trunkline.api.cli import Command, Group
from trunkline_budget.settings import BudgetSettings

if TYPE_CHECKING:
    from trunkline.api.bus import Bus
    from trunkline.api.costs import BudgetEvent
    from trunkline_budget.state import BudgetState

EXAMPLES = """
trunkline budget
trunkline budget list --json
trunkline budget history
trunkline budget reset
trunkline budget reset --block main
trunkline budget set max_daily_spend 10
"""

SET_EXAMPLES = """
trunkline budget set max_daily_spend 10
trunkline budget set blocks.garden.max_daily_spend 0.50
trunkline budget set max_daily_spend default
"""


def budget_group(settings: PluginSettings) -> click.Group:
    """Return the commands."""

    @click.group("budget", cls=Group, examples=EXAMPLES)
    def budget() -> None:
        """Show the budgets, and begin one anew.

        Budgets are set in [plugins.budget] of trunkline.toml: max_daily_spend, max_loops_per_hour and others.
        "trunkline budget set" changes one while the platform runs.
        """

    for command in (
        _list_command(settings),
        _history_command(),
        _reset_command(settings),
        _set_command(settings),
    ):
        budget.add_command(command)
    return budget


def _list_command(settings: PluginSettings) -> click.Command:
    @click.command("list", cls=Command, examples="trunkline budget list\ntrunkline budget list --json")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON; amounts of money are micro-USD.")
    def list_budgets(as_json: bool) -> None:
        """Show what is used of each budget."""
        from trunkline.api.cli import print_json, with_workers
        from trunkline_budget.limit_editor import current_limits
        from trunkline_budget.state import budget_states

        configured = settings.section(BudgetSettings)

        async def read(bus: "Bus") -> "tuple[list[BudgetState], BudgetSettings]":
            limits = await current_limits(bus, configured)
            return await budget_states(bus, limits), limits

        states, limits = with_workers(read, "memory")
        if as_json:
            print_json({"budgets": states})
        else:
            _print_states(states, limits)

    return list_budgets


def _history_command() -> click.Command:
    @click.command(
        "history", cls=Command, examples="trunkline budget history\ntrunkline budget history --json"
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON; amounts of money are micro-USD.")
    def history(as_json: bool) -> None:
        """Show which budgets were used up or reset in the last 30 days. Memory keeps all, in budgets/."""
        from trunkline.api.cli import print_json, with_workers

        events = with_workers(_events)
        if as_json:
            print_json({"events": events})
        else:
            _print_events(events)

    return history


def _reset_command(settings: PluginSettings) -> click.Command:
    @click.command(
        "reset", cls=Command, examples="trunkline budget reset\ntrunkline budget reset --block main"
    )
    @click.option("--block", default="", help="The budgets of this block instead of those of all blocks.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON; amounts of money are micro-USD.")
    def reset(block: str, as_json: bool) -> None:
        """Let a used-up budget begin anew before its day or hour is over."""
        from trunkline.api.cli import print_done, print_json, with_workers
        from trunkline.api.costs import describe_budget_event
        from trunkline_budget.limit_editor import current_limits
        from trunkline_budget.state import reset_budgets

        configured = settings.section(BudgetSettings)

        async def begin_anew(bus: "Bus") -> "tuple[BudgetEvent, ...]":
            return await reset_budgets(bus, await current_limits(bus, configured), block, "owner")

        events = with_workers(begin_anew, "memory")
        if not events:
            raise _nothing_to_reset(block)
        if as_json:
            print_json({"events": events})
            return
        for event in events:
            print_done(describe_budget_event(event))

    return reset


def _set_command(settings: PluginSettings) -> click.Command:
    @click.command("set", cls=Command, examples=SET_EXAMPLES)
    @click.argument("key")
    @click.argument("value")
    @click.option("--json", "as_json", is_flag=True, help="Print all limits as JSON; amounts are US dollars.")
    def set_value(key: str, value: str, as_json: bool) -> None:
        """Change a limit for the next calls, without a restart.

        KEY is that of [plugins.budget] in trunkline.toml. VALUE is a number, or "default" for the limit that
        trunkline.toml has. The change is in budgets/limits.json of memory, with its history, and in the audit log.
        """
        from trunkline.api.cli import print_done, print_json, with_workers
        from trunkline_budget.health import described_limits
        from trunkline_budget.limit_editor import listed_limits, set_limit

        number = None if value == "default" else _number(value)
        changes = with_workers(lambda bus: set_limit(bus, key, number), "memory")
        configured = settings.section(BudgetSettings)
        limits = changes.applied_to(configured)
        if as_json:
            print_json({"limits": listed_limits(configured, limits)})
        else:
            print_done(f"Limits: {'; '.join(described_limits(limits)) or 'none'}.")

    return set_value


def _number(value: str) -> float:
    """Return the number that somebody typed. Raises ConfigError."""
    from trunkline import ConfigError

    try:
        return float(value)
    except ValueError:
        raise ConfigError(f"{value!r} is no number.", hint='Give a number, or "default".') from None


def _nothing_to_reset(block: str) -> Exception:
    from trunkline import ConfigError

    whose = (
        f"Block {block} has no budget of its own, or used nothing of it"
        if block
        else "There is no budget of all blocks"
    )
    where = f"[plugins.budget.blocks.{block}]" if block else "[plugins.budget]"
    return ConfigError(
        f"{whose}: nothing was reset.",
        hint=f'"trunkline budget" lists the budgets; {where} of trunkline.toml sets them.',
    )


async def _events(bus: "Bus") -> "list[BudgetEvent]":
    from trunkline.api.costs import BUDGET_EVENT

    return [stored.data async for stored in bus.history(BUDGET_EVENT)]


def _print_states(states: "Sequence[BudgetState]", limits: BudgetSettings) -> None:
    from trunkline.api.cli import print_table
    from trunkline.api.costs import budget_owner, format_amount
    from trunkline.api.text import format_local_time
    from trunkline_budget.health import described_limits

    if not limits.limits_spend and not limits.limits_loops:
        click.echo(
            "No budget is set: models may be called without limit. [plugins.budget] sets one.", err=True
        )
        return
    if (
        not states or limits.max_turn_spend or limits.max_turn_loops
    ):  # a turn's budget and an unused one have no row
        click.echo(f"Limits: {'; '.join(described_limits(limits))}.", err=True)
    if not states:
        return
    rows = []
    for one in states:
        held = f" (and {format_amount(one.measure, one.reserved)} reserved)" if one.reserved else ""
        opens = format_local_time(one.opens_at) if one.opens_at else ""
        state = (
            f"used up until {opens}"
            if one.is_exhausted
            else f"{1 - one.used / one.limit:.0%} left until {opens}"
        )
        rows.append(
            (budget_owner(one.block, ""), f"{format_amount(one.measure, one.used)}{held}",
             format_amount(one.measure, one.limit), state)
        )  # fmt: skip
    print_table(rows, header=("BUDGET", "USED", "LIMIT", "STATE"))


def _print_events(events: "Sequence[BudgetEvent]") -> None:
    from trunkline.api.cli import print_text
    from trunkline.api.costs import describe_budget_event
    from trunkline.api.text import format_local_time

    if not events:
        click.echo("No budget was used up or reset.", err=True)
    for event in events:
        print_text(f"{format_local_time(event.at)}  {describe_budget_event(event)}")
