"""``trunkline workflows approve``: approves the step at which a run waits."""

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

EXAMPLES = """
trunkline workflows approve last
trunkline workflows approve 1f4a90c2 --no-wait
"""


@click.command(cls=Command, examples=EXAMPLES)
@run_argument
@block_option
@click.option(
    "--as-begun", is_flag=True, help="Approve although the workflow's file was changed since the run began."
)
@wait_option
@json_option
def command(run: str, block: str, as_begun: bool, wait: bool, as_json: bool) -> int:
    """Approve the call at which a RUN waits: its approval step, or an action that needs approval.

    The first decision counts, whatever channel it comes from. If the workflow's file was changed since the run began,
    nothing is approved: "migrate" continues with the changed file, and --as-begun with the run's own definition.
    """
    from trunkline_workflow.commands._decide import decide

    view = with_runs(
        block, lambda runs: decide(runs, run, allow=True, as_begun=as_begun, wait=wait), run_turns=wait
    )
    return print_run(view, as_json=as_json)
