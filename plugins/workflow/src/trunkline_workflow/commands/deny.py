"""``trunkline workflows deny``: rejects the step at which a run waits."""

import click

from trunkline.api.cli import Command
from trunkline_workflow.commands._common import (
    block_option,
    json_option,
    print_run,
    run_argument,
    wait_option,
    with_runs,
)


@click.command(cls=Command, examples="trunkline workflows deny last")
@run_argument
@block_option
@wait_option
@json_option
def command(run: str, block: str, wait: bool, as_json: bool) -> int:
    """Reject the call at which a RUN waits. The run goes on with the step's on_reject, or fails without one."""
    from trunkline_workflow.commands._decide import decide

    view = with_runs(
        block, lambda runs: decide(runs, run, allow=False, as_begun=False, wait=wait), run_turns=wait
    )
    return print_run(view, as_json=as_json)
