"""``trunkline trace last|TURN``: the timeline of a turn as a tree, from the bus's span stream."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.contracts.workers.messages import SpanRecord
    from trunkline.telemetry.trace_tree import SpanLine
    from trunkline_bus import Bus

EXAMPLES = """
trunkline trace last
trunkline trace turn_01JD3V9Q8W7X6Y5Z4A3B2C1D0E
trunkline trace last --json
"""

TIMES = 24
"""Columns before a span's place in the tree."""

NAME, WORKER = 52, 12
"""Columns for a span's indentation and name if the terminal is wide enough, and for its worker."""

WAIT_SECONDS = 3.0
"""Seconds to wait for the last spans of a turn that has just ended."""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("turn", metavar="last|TURN")
@click.option("--json", "as_json", is_flag=True, help="Print the spans as JSON.")
def command(turn: str, as_json: bool) -> None:
    """Draw the timeline of a TURN: its steps with their times, durations, tokens and errors."""
    from trunkline.cli.aio import run

    run(_trace, turn, as_json)


async def _trace(turn: str, as_json: bool) -> None:
    import msgspec

    from trunkline.cli.output import print_text
    from trunkline.config import load_config
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.runtime.trace_reader import read_spans
    from trunkline.workers import load_worker

    async with connect_to_platform(load_config(), load_worker, kinds=()) as bus:
        found, trace_id = await _find(bus, turn)
        spans = await read_spans(bus, trace_id, wait=WAIT_SECONDS)
    if as_json:
        print_text(msgspec.json.encode(spans).decode())
    else:
        _print(found, trace_id, spans)


def _print(turn: str, trace_id: str, spans: "list[SpanRecord]") -> None:
    """Print the tree, with failures in red."""
    from trunkline.cli.output import colourize, fit_text, print_text, terminal_width
    from trunkline.telemetry.trace_tree import tree_lines

    print_text(fit_text(_heading(turn, trace_id)))
    width = terminal_width()
    name = NAME if width is None else max(0, min(NAME, width - TIMES - WORKER))
    for line in tree_lines(spans):
        shown = fit_text(_drawn(line, name), hang=TIMES + len(line.branch) + 2)
        print_text(colourize(shown, "red" if line.span.status == "error" else None))


def _heading(turn: str, trace_id: str) -> str:
    return f"turn {turn}  trace {trace_id}"


async def draw_trace(bus: "Bus", turn: str) -> str:
    """Return the tree of a turn (or of the ``last`` one) as plain text. Raises TrunklineError when there is none."""
    from trunkline.runtime.trace_reader import read_spans

    found, trace_id = await _find(bus, turn)
    return _tree(found, trace_id, await read_spans(bus, trace_id, wait=WAIT_SECONDS))


def _tree(turn: str, trace_id: str, spans: "list[SpanRecord]") -> str:
    from trunkline.telemetry.trace_tree import tree_lines

    return "\n".join([_heading(turn, trace_id), *map(_drawn, tree_lines(spans))])


async def _find(bus: "Bus", turn: str) -> tuple[str, str]:
    """Return the turn's id and trace id, from its journal."""
    from trunkline.errors import TrunklineError
    from trunkline.runtime.trace_reader import find_trace

    found = await find_trace(bus, "" if turn == "last" else turn)
    if found is None and turn == "last":
        raise TrunklineError("There is no turn yet.", hint='Send a message first: trunkline say "hello".')
    if found is None:
        raise TrunklineError(
            f"There is no turn {turn!r} in the journal.",
            hint='"trunkline trace last" draws the last one; "trunkline say --json" prints the id of its turn.',
        )
    if not found[1]:
        raise TrunklineError(
            f"Turn {found[0]} has no trace.", hint="Set [telemetry] traces = true and try another turn."
        )
    return found


def _drawn(line: "SpanLine", width: int = NAME) -> str:
    from trunkline.telemetry.trace_tree import span_title, span_worker

    name = f"{line.branch}{span_title(line.span)}"
    times = f"{line.start:8.3f}s {line.length * 1000:9.1f} ms"
    return f"{times}  {name:<{width}} {span_worker(line.span):<10} {line.notes}".rstrip()
