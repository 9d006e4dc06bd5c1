"""``trunkline workflows list``: the workflows of a block, the proposals, and the runs."""

from typing import TYPE_CHECKING, Any

import click

from trunkline.api.cli import Command
from trunkline_workflow.commands._common import block_option, json_option, with_runs

if TYPE_CHECKING:
    from trunkline_workflow.runs import Runs

EXAMPLES = """
trunkline workflows list
trunkline workflows list --runs --json
"""


@click.command(cls=Command, examples=EXAMPLES)
@block_option
@click.option("--runs", "show_runs", is_flag=True, help="List the runs, newest first, with their states.")
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1, 500), help="The most runs to show."
)
@json_option
def command(block: str, show_runs: bool, limit: int, as_json: bool) -> None:
    """List the workflows of a block and the proposals of its agent, or the runs."""
    from trunkline.api.cli import print_json, print_table

    if show_runs:
        rows = with_runs(block, lambda runs: _runs(runs, limit))
        if as_json:
            print_json(rows)
        elif not rows:
            click.echo(f"There is no run in the block {block}.")
        else:
            cells = [(r["run"], r["workflow"], r["status"], r["step"], r["started_at"]) for r in rows]
            print_table(cells, header=("RUN", "WORKFLOW", "STATE", "STEP", "STARTED"))
        return
    found = with_runs(block, _workflows)
    if as_json:
        print_json(found)
    elif not found:
        click.echo(
            f"There is no workflow in the block {block}. Install one: trunkline workflows install FILE"
        )
    else:
        print_table(
            [(one["name"], one["state"], one["description"]) for one in found], header=("NAME", "", "WHAT")
        )


async def _runs(runs: "Runs", limit: int) -> list[dict[str, Any]]:
    views = [await runs.view(record) for record in (await runs.list())[:limit]]
    return [
        {
            "run": view.record.start.run,
            "workflow": view.record.start.workflow,
            "status": view.status,
            "step": view.state.current_step,
            "started_at": view.record.started_at.isoformat(timespec="seconds"),
        }
        for view in views
    ]


async def _workflows(runs: "Runs") -> list[dict[str, str]]:
    files = runs.files
    found = [_entry(name, await files.text(name), "") for name in await files.names()]
    proposed = [_entry(name, await files.proposal(name), "proposed") for name in await files.proposals()]
    return found + proposed


def _entry(name: str, text: str | None, state: str) -> dict[str, str]:
    from trunkline_workflow.definition import DefinitionError, parse_definition

    try:
        description = parse_definition(text or "").description
    except DefinitionError as error:
        state = f"{state} invalid".strip()
        description = str(error.problems[0])
    return {"name": name, "state": state, "description": " ".join(description.split())}
