"""``trunkline workflows logs``: what a run has done, call by call."""

from typing import TYPE_CHECKING, Any

import click

from trunkline.api.cli import Command
from trunkline_workflow.commands._common import block_option, json_option, run_argument, with_runs

if TYPE_CHECKING:
    from trunkline_workflow.runs import Runs

LONGEST = 200
"""Characters of a result that a line shows."""


@click.command(
    cls=Command, examples="trunkline workflows logs last\ntrunkline workflows logs 1f4a90c2 --json"
)
@run_argument
@block_option
@json_option
def command(run: str, block: str, as_json: bool) -> None:
    """Show the calls of a RUN with their results, and who decided about them."""
    from trunkline.api.cli import print_json, print_table

    rows = with_runs(block, lambda runs: _rows(runs, run))
    if as_json:
        print_json(rows)
    else:
        cells = [(r["step"], r["tool"], r["outcome"], r["by"], r["result"][:LONGEST]) for r in rows]
        print_table(cells, header=("STEP", "TOOL", "OUTCOME", "BY", "RESULT"))


async def _rows(runs: "Runs", run: str) -> list[dict[str, Any]]:
    from trunkline_workflow.run_log import log_rows

    return log_rows(await runs.view(await runs.find(run)))
