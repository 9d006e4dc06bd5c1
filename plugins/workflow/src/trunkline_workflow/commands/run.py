"""``trunkline workflows run``: begins a run."""

from typing import TYPE_CHECKING, Any

import click

from trunkline.api.cli import Command
from trunkline_workflow.commands._common import (
    block_option,
    json_option,
    parse_or_fail,
    print_run,
    wait_option,
    watch,
    with_runs,
)

if TYPE_CHECKING:
    from trunkline_workflow.runs import Runs, RunView

EXAMPLES = """
trunkline workflows run deploy-app
trunkline workflows run deploy-app --input version=1.4 --input 'hosts=["a", "b"]'
trunkline workflows run deploy-app --no-wait --json
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("name")
@block_option
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="An input; JSON keeps its type.")
@wait_option
@json_option
def command(name: str, block: str, inputs: tuple[str, ...], wait: bool, as_json: bool) -> int:
    """Begin a run of the workflow NAME, with the definition that its file has now.

    The exit status is 1 when the run fails or is cancelled. A run that waits for a person goes on when somebody
    approves, from any channel, also after restarts.
    """
    values = dict(_input(text) for text in inputs)

    async def begun(runs: "Runs") -> "RunView":
        definition = parse_or_fail(await runs.files.require_text(name), f"{name}.yaml")
        view = await runs.view(await runs.begin(definition, values))
        return await watch(runs, view) if wait else view

    return print_run(with_runs(block, begun, run_turns=wait), as_json=as_json)


def _input(text: str) -> tuple[str, Any]:
    import msgspec

    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{text!r} is not of the form NAME=VALUE.")
    try:
        return name, msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return name, value
