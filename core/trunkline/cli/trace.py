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

POLL_SECONDS = 5.0
"""Seconds to wait for a journal that does not answer."""

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
    from trunkline.workers import load_worker

    async with connect_to_platform(load_config(), load_worker, kinds=()) as bus:
        found, trace_id = await _find(bus, turn)
        spans = await _spans(bus, trace_id)
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
    found, trace_id = await _find(bus, turn)
    return _tree(found, trace_id, await _spans(bus, trace_id))


def _tree(turn: str, trace_id: str, spans: "list[SpanRecord]") -> str:
    from trunkline.telemetry.trace_tree import tree_lines

    return "\n".join([_heading(turn, trace_id), *map(_drawn, tree_lines(spans))])


async def _find(bus: "Bus", turn: str) -> tuple[str, str]:
    """Return the turn's id and trace id, from its journal."""
    from trunkline.contracts.turns.journal_messages import TurnStarted
    from trunkline.contracts.turns.subjects import JOURNAL
    from trunkline.errors import TrunklineError
    from trunkline_bus import SubjectError

    keys = {} if turn == "last" else {"turn": turn}
    try:
        last = await bus.last(JOURNAL, timeout=POLL_SECONDS, **keys)
    except SubjectError:
        last = None
    if last is None:
        if turn == "last":
            raise TrunklineError("There is no turn yet.", hint='Send a message first: trunkline say "hello".')
        raise TrunklineError(
            f"There is no turn {turn!r} in the journal.",
            hint='"trunkline trace last" draws the last one; "trunkline say --json" prints the id of its turn.',
        )
    async for stored in bus.history(JOURNAL, after=0, **last.keys):
        for entry in stored.data.entries:
            if isinstance(entry, TurnStarted) and entry.request.traceparent:
                return last.data.turn, entry.request.traceparent.split("-")[1]
    raise TrunklineError(
        f"Turn {last.data.turn} has no trace.", hint="Set [telemetry] traces = true and try another turn."
    )


async def _spans(bus: "Bus", trace_id: str) -> "list[SpanRecord]":
    """Return the spans of the trace. For a turn that has just ended, wait a short time for its last spans; the span
    of the turn arrives last.
    """
    import anyio

    from trunkline.contracts.workers.subjects import SPANS
    from trunkline.telemetry.semconv import INVOKE_AGENT
    from trunkline.telemetry.trace_tree import latest_spans

    spans: list[SpanRecord] = []
    with anyio.move_on_after(WAIT_SECONDS):
        while not any(span.name.startswith(INVOKE_AGENT) and not span.unfinished for span in spans):
            spans = [
                s async for batch in bus.history(SPANS, after=0, trace=trace_id) for s in batch.data.spans
            ]
            await anyio.sleep(0.1)
    return list(latest_spans(spans))


def _drawn(line: "SpanLine", width: int = NAME) -> str:
    from trunkline.telemetry.trace_tree import span_title, span_worker

    name = f"{line.branch}{span_title(line.span)}"
    times = f"{line.start:8.3f}s {line.length * 1000:9.1f} ms"
    return f"{times}  {name:<{width}} {span_worker(line.span):<10} {line.notes}".rstrip()
