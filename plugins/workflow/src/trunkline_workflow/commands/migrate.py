"""``trunkline workflows migrate``: continues a run with the changed file of its workflow."""

from typing import TYPE_CHECKING

import click

from trunkline.api.cli import Command
from trunkline_workflow.commands._common import (
    block_option,
    json_option,
    parse_or_fail,
    print_run,
    run_argument,
    wait_option,
    watch,
    with_runs,
)

if TYPE_CHECKING:
    from trunkline_workflow.runs import Runs, RunView


@click.command(cls=Command, examples="trunkline workflows migrate last")
@run_argument
@block_option
@wait_option
@json_option
def command(run: str, block: str, wait: bool, as_json: bool) -> int:
    """Cancel a RUN that waits, and begin another one with the file that the workflow has now.

    An action that the earlier run has done is not done again, if the changed workflow calls the same tool with the same
    arguments in the same step. Approvals are asked for again.
    """
    view = with_runs(block, lambda runs: _migrate(runs, run, wait), run_turns=wait)
    return print_run(view, as_json=as_json)


async def _migrate(runs: "Runs", run: str, wait: bool) -> "RunView":
    from trunkline import TrunklineError

    old = await runs.view(await runs.find(run))
    name = old.record.start.workflow
    definition = parse_or_fail(await runs.files.require_text(name), f"{name}.yaml")
    if old.status != "waiting_approval":
        raise TrunklineError(
            f"The run {old.record.start.run} is {old.status}; only a run that waits for a person can be migrated."
        )
    await runs.gateway.cancel(old.record.turn)
    view = await runs.view(await runs.begin(definition, old.record.start.inputs, old))
    return await watch(runs, view) if wait else view
