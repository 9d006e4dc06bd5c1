"""``trunkline costs``: what models cost, from the cost ledger."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.completion_types import BlockName

if TYPE_CHECKING:
    from trunkline.contracts.costs.report_messages import CostSum, Grouping
    from trunkline.runtime.cost_report import CostReport
    from trunkline_bus import Bus

EXAMPLES = """
trunkline costs
trunkline costs --by model --since 7d
trunkline costs --by conversation --block main
trunkline costs --by day --csv > costs.csv
trunkline costs --json
"""

BAR_WIDTH = 24
"""Characters of the bar of the most expensive row."""

EIGHTHS = " ▏▎▍▌▋▊▉█"


@click.command(cls=Command, examples=EXAMPLES)
@click.option(
    "--by",
    type=click.Choice(["block", "day", "model", "purpose", "conversation"]),
    default="day",
    show_default=True,
    help="What each row is about.",
)
@click.option(
    "--since",
    default="30d",
    show_default=True,
    metavar="WHEN",
    help="Only requests since this time: 30m, 2h or 7d ago, or a date.",
)
@click.option("--block", type=BlockName(), help="Only requests of this block.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; costs are in micro-USD.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV; costs are in US dollars.")
def command(by: "Grouping", since: str, block: str | None, as_json: bool, as_csv: bool) -> None:
    """Show what the requests to models cost, by block, day, model, purpose or conversation.

    Memory holds the ledger, one file for each day: costs/2026-11-22.jsonl. It has one line for each request that was
    sent to a model, also for those that failed. A cost is the tokens that the vendor counted multiplied by the price.
    """
    from trunkline.cli.memory.attached_memory import with_memory
    from trunkline.cli.time_type import parse_since
    from trunkline.runtime.cost_report import cost_report, entries_since

    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other.")
    first = parse_since(since)

    async def job(bus: "Bus") -> "CostReport":
        from trunkline.runtime.daily_log import COST_LEDGER
        from trunkline.runtime.daily_log_reader import read_daily_log

        return cost_report(
            entries_since(await read_daily_log(bus, COST_LEDGER, first), first, block), by, first
        )

    report = with_memory(job)
    if as_json:
        _print_json(report)
    elif as_csv:
        _print_csv(report)
    else:
        _print(report)


def _print(report: "CostReport") -> None:
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import fit_text, print_table

    if not report.rows:
        note = (
            f"No model was asked since {format_local_time(report.since)}. --since 365d shows older requests."
        )
        click.echo(fit_text(note, err=True), err=True)
        return
    most = max(row.cost for row in report.rows)
    header = (report.by.upper(), "REQUESTS", "INPUT", "CACHED", "OUTPUT", "USD", "")
    rows = [_cells(row, most) for row in report.rows]
    if len(report.rows) > 1:
        rows.append(_cells(report.total, 0))
    print_table(_aligned([header, *rows])[1:], header=_aligned([header, *rows])[0])
    for note in _notes(report):
        click.echo(fit_text(note, err=True), err=True)


def _cells(row: "CostSum", most: int) -> tuple[str, ...]:
    cached = f"{row.cached_share:.0%}" if row.usage.input_tokens else ""
    return (
        row.key,
        _grouped(row.requests),
        _grouped(row.usage.input_tokens),
        cached,
        _grouped(row.usage.output_tokens),
        _dollars(row.cost),
        _bar(row.cost, most),
    )


def _aligned(rows: "list[tuple[str, ...]]") -> "list[tuple[str, ...]]":
    """Return the rows with their numbers aligned at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numbers = range(1, len(widths) - 1)
    return [
        tuple(
            cell.rjust(width) if number in numbers else cell
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _bar(cost: int, most: int) -> str:
    """Return a bar with a length in proportion to the cost, in eighths of a character."""
    if not most:
        return ""
    whole, eighths = divmod(round(cost / most * BAR_WIDTH * 8), 8)
    return "█" * whole + EIGHTHS[eighths].strip()


def _notes(report: "CostReport") -> "list[str]":
    notes = []
    if report.unpriced:
        first, *others = report.unpriced
        named = ", ".join([first, *others[:4], *(["…"] if others[4:] else [])])
        notes.append(
            f"Requests that are not in the sum, because their models have no price: {report.total.unpriced} ({named}). "
            f'Set one in [models.prices."{first}"].'
        )
    if report.total.estimated:
        notes.append(
            f"Requests whose costs are estimates, because no answer reached its end: {report.total.estimated}."
        )
    return notes


def _print_json(report: "CostReport") -> None:
    from trunkline.cli.output import print_json

    print_json({"by": report.by, "since": report.since, "rows": report.rows, "total": report.total})


def _print_csv(report: "CostReport") -> None:
    import csv
    import sys

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(
        (report.by, "requests", "input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens",
         "reasoning_tokens", "usd", "unpriced", "estimated", "failed")
    )  # fmt: skip
    for row in report.rows:
        usage = row.usage
        writer.writerow(
            (row.key, row.requests, usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens,
             usage.output_tokens, usage.reasoning_tokens, f"{row.cost / 1e6:.6f}", row.unpriced, row.estimated,
             row.failed)
        )  # fmt: skip


def _grouped(count: int) -> str:
    return f"{count:,}".replace(",", " ")


def _dollars(micro: int) -> str:
    return f"{micro / 1e6:,.4f}".replace(",", " ")
