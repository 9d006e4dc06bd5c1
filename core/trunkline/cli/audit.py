"""``trunkline audit``: the decisions about tool calls, and the results of the calls."""

import sys
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli.command import Command
from trunkline.cli.completion_types import BlockName

if TYPE_CHECKING:
    from trunkline.contracts.audit.messages import AuditEntry
    from trunkline.runtime.audit_reader import AuditFilter
    from trunkline_bus import Bus

EXAMPLES = """
trunkline audit
trunkline audit --block main --since 2h --decision denied
trunkline audit --tool write_file --json
trunkline audit --follow
"""


HEADER = "TIME                       BLOCK  RESULT    TOOL, BY WHOM, WHY OR WITH WHAT"


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--block", type=BlockName(), help="Only entries of this block's agent.")
@click.option("--tool", help="Only entries about this tool.")
@click.option(
    "--effect",
    type=click.Choice(["read", "write", "send", "exec"]),
    help="Only entries about tools with this effect.",
)
@click.option(
    "--event",
    type=click.Choice(["decision", "call", "approval", "permissions", "auth", "settings", "panic", "lost"]),
    help="Only entries of this kind.",
)
@click.option("--decision", type=click.Choice(["allowed", "asked", "denied", "approved", "expired", "withdrawn"]),
              help="Only entries with this decision.")  # fmt: skip
@click.option(
    "--since",
    default="1d",
    show_default=True,
    metavar="WHEN",
    help="Only entries since this time: 30m, 2h or 7d ago, or a date.",
)
@click.option(
    "--limit",
    default=100,
    show_default=True,
    type=click.IntRange(min=1),
    help="The number of entries, counted from the newest.",
)
@click.option("--follow", is_flag=True, help="Print new entries until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one entry on each line.")
def command(since: str, limit: int, follow: bool, as_json: bool, **conditions: Any) -> None:
    """Show the decisions about tool calls and the results of the calls, the oldest first.

    Memory holds the log, one file for each day: audit/2026-11-22.jsonl.
    """
    from trunkline.cli.memory.attached_memory import with_memory
    from trunkline.cli.time_type import parse_since
    from trunkline.runtime.audit_reader import AuditFilter

    filters = AuditFilter(parse_since(since), **conditions)
    with_memory(lambda bus: _print(bus, filters, limit, follow, as_json))


async def _print(bus: "Bus", filters: "AuditFilter", limit: int, follow: bool, as_json: bool) -> None:
    from trunkline._util.local_time import format_local_time
    from trunkline.cli._support.blocks import require_block
    from trunkline.cli._support.rules import ALL_BLOCKS
    from trunkline.cli.output import fit_text
    from trunkline.runtime.audit_reader import follow_entries, read_entries

    found = await read_entries(bus, filters)
    if not found and filters.block not in (
        None,
        ALL_BLOCKS,
    ):  # the log also contains entries of deleted blocks
        await require_block(bus, filters.block)
    if (found or follow) and not as_json and sys.stdout.isatty():
        click.echo(HEADER)
    for entry in found[-limit:]:
        _line(entry, as_json)
    if not found and not follow:
        note = f"There are no such entries since {format_local_time(filters.since)}. --since 7d shows older ones."
        click.echo(fit_text(note, err=True), err=True)
    if follow:
        async for entry in follow_entries(bus, filters, {entry.id for entry in found}):
            _line(entry, as_json)


def _line(entry: "AuditEntry", as_json: bool) -> None:
    import msgspec

    from trunkline._util.local_time import format_local_time
    from trunkline._util.text import one_line
    from trunkline.cli.output import fit_text

    if as_json:
        click.echo(msgspec.json.encode(entry).decode())
        return
    what = entry.decision or entry.status or entry.event
    effect = f" ({entry.effect})" if entry.effect else ""
    subject = f"{entry.tool}{effect}" if entry.tool else entry.event
    by = f" by {', '.join(entry.by)}" if entry.by else ""
    took = f" {entry.seconds:.3f} s" if entry.seconds is not None else ""
    given = " ".join(f"{name}={value!r}" for name, value in (entry.arguments or {}).items())
    since = format_local_time(entry.first, seconds=True) if entry.count and entry.first else ""
    many = f" {entry.count} times since {since}" if since else ""
    at = format_local_time(entry.at, seconds=True)
    note = f"{at}  {entry.block}  {what:<8}  {subject}{by}{took}{many}  {entry.why or given}"
    click.echo(fit_text(one_line(note.rstrip())))
