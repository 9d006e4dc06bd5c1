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


END_SECONDS, POLL_SECONDS = 120.0, 0.2
"""Seconds that the cancelled run may take to end, and between two looks at it."""


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
    import anyio

    from trunkline import TrunklineError
    from trunkline_workflow.runs import check_inputs

    old = await runs.view(await runs.find(run))
    name = old.record.start.workflow
    definition = parse_or_fail(await runs.files.require_text(name), f"{name}.yaml")
    if old.status not in ("waiting_approval", "cancelled"):  # a migration that was killed left it cancelled
        raise TrunklineError(
            f"The run {old.record.start.run} is {old.status}; only a run that waits for a person, or was cancelled, "
            "can be migrated."
        )
    # Everything that may refuse comes before the cancel. The results are read after the run has ended: until then
    # another channel may approve, and the next action may run.
    check_inputs(definition, old.record.start.inputs)
    if not old.ended:
        await runs.gateway.cancel(old.record.turn)
        with anyio.fail_after(END_SECONDS):
            while not old.ended:
                await anyio.sleep(POLL_SECONDS)
                old = await runs.view(old.record)
    view = await runs.view(await runs.begin(definition, old.record.start.inputs, old))
    return await watch(runs, view) if wait else view
