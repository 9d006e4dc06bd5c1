"""``trunkline workflows cancel``: ends a run."""

from typing import TYPE_CHECKING

import click

from trunkline.api.cli import Command
from trunkline_workflow.commands._common import block_option, json_option, run_argument, run_text, with_runs

if TYPE_CHECKING:
    from trunkline_workflow.runs import Runs, RunView


@click.command(cls=Command, examples="trunkline workflows cancel last")
@run_argument
@block_option
@json_option
def command(run: str, block: str, as_json: bool) -> int:
    """End a RUN now. What its steps have done is not undone.

    The exit status is 1 when the run had ended before.
    """
    from trunkline.api.cli import print_json, print_text

    was_over, view = with_runs(block, lambda runs: _cancel(runs, run), run_turns=True)
    if as_json:
        print_json(view.frozen)
    else:
        print_text(run_text(view))
    return 1 if was_over else 0


async def _cancel(runs: "Runs", run: str) -> "tuple[bool, RunView]":
    import anyio

    view = await runs.view(await runs.find(run))
    if view.ended:
        return True, view
    await runs.gateway.cancel(view.record.turn)
    with anyio.move_on_after(120):
        while not view.ended:
            await anyio.sleep(0.1)
            view = await runs.view(view.record)
    return False, view
