"""``trunkline workflows install``: a person installs a workflow from a file, or one that an agent proposed."""

from typing import TYPE_CHECKING

import click

from trunkline.api.cli import Command
from trunkline_workflow.commands._common import block_option, json_option, parse_or_fail, with_runs
from trunkline_workflow.commands.check import is_file, read_file

if TYPE_CHECKING:
    from trunkline_workflow.runs import Runs

EXAMPLES = """
trunkline workflows install ./deploy-app.yaml
trunkline workflows install tidy-notes --block home --yes
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("workflow", metavar="FILE|PROPOSAL")
@block_option
@click.option(
    "--yes", is_flag=True, help="Install a proposal without asking. Its text is printed all the same."
)
@json_option
def command(workflow: str, block: str, yes: bool, as_json: bool) -> None:
    """Install a workflow in a block, in place of the one of that name. Runs that have begun keep their definition.

    The text of a PROPOSAL is shown first, and you confirm it: an agent wrote it.
    """
    from trunkline.api.cli import confirm, print_json, print_text

    proposed = not is_file(workflow)
    text = with_runs(block, lambda runs: _proposal(runs, workflow)) if proposed else read_file(workflow)
    definition = parse_or_fail(text, workflow)
    if proposed:
        _check_name(definition.name, workflow)
        print_text(text, err=as_json)
        if not yes:
            confirm(f"Install this as the workflow {definition.name} of the block {block}?", done="installed")
    with_runs(block, lambda runs: runs.files.install(definition.name, text, proposed=proposed))
    if as_json:
        print_json({"name": definition.name, "block": block, "sha256": definition.sha256})
    else:
        click.echo(f"The workflow {definition.name} is installed in the block {block}.")


def _check_name(name: str, proposal: str) -> None:
    from trunkline import TrunklineError

    if name != proposal:
        raise TrunklineError(
            f"The proposal {proposal} calls itself {name}.",
            hint="A proposal has the name of its file. Have the agent propose it again.",
        )


async def _proposal(runs: "Runs", name: str) -> str:
    from trunkline import TrunklineError

    text = await runs.files.proposal(name)
    if text is None:
        raise TrunklineError(
            f"There is no proposal {name!r} in the block {runs.files.block}.",
            hint="A file has a slash or .yaml in its name, such as ./deploy-app.yaml.",
        )
    return text
