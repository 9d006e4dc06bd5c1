"""``trunkline workflows show``: a workflow, or where a run is, as text, JSON or a drawing."""

from typing import TYPE_CHECKING

import click

from trunkline.api.cli import Command
from trunkline_workflow.commands._common import block_option, json_option, parse_or_fail, print_run, with_runs

if TYPE_CHECKING:
    from trunkline_workflow.runs import Runs, RunView

EXAMPLES = """
trunkline workflows show last
trunkline workflows show deploy-app --mermaid
trunkline workflows show 1f4a90c2 --json
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("what", metavar="last|RUN|NAME")
@block_option
@click.option(
    "--mermaid", is_flag=True, help="Print the graph for Mermaid; of a run, with the states of its steps."
)
@json_option
def command(what: str, block: str, mermaid: bool, as_json: bool) -> int:
    """Show a run, or the text of the workflow NAME.

    The exit status is 1 for a run that failed or was cancelled.
    """
    from trunkline.api.cli import print_json, print_text
    from trunkline_workflow.definition import parse_definition
    from trunkline_workflow.graph import mermaid as drawing

    found = with_runs(block, lambda runs: _found(runs, what))
    if isinstance(found, str):
        if mermaid or as_json:
            definition = parse_or_fail(found, f"{what}.yaml")
        if mermaid:
            print_text(drawing(definition), nl=False)
        elif as_json:
            print_json({"name": definition.name, "sha256": definition.sha256, "definition": found})
        else:
            print_text(found, nl=False)
        return 0
    if mermaid:
        definition = parse_definition(found.record.start.definition)
        print_text(drawing(definition, found.state.step_states), nl=False)
        return 0
    return print_run(found, as_json=as_json)


async def _found(runs: "Runs", what: str) -> "str | RunView":
    """Return the text of the workflow of this name, else the run."""
    text = await runs.files.text(what)
    return text if text is not None else await runs.view(await runs.find(what))
