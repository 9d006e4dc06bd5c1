"""``trunkline learning episodes``: which tasks are remembered, and how they went."""

import click

from trunkline.api.cli import Command, with_memory


@click.command(
    cls=Command,
    examples="trunkline learning episodes\ntrunkline learning episodes --model openai/gpt-5.5 --json",
)
@click.option("--model", help="Only items of this model.")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="The largest number of results.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(model: str | None, limit: int, as_json: bool) -> int:
    """Show the remembered tasks, newest first. The exit status is 1 when there is none."""
    from trunkline.api.cli import print_json, print_table
    from trunkline.api.text import format_local_time
    from trunkline_learning.inventory import Inventory
    from trunkline_learning.text import cut

    found = with_memory(lambda bus: Inventory(bus).latest_episodes(model, limit))
    if as_json:
        print_json(found)
    elif not found:
        click.echo("No task is remembered.", err=True)
    elif found:
        rows = [
            (
                format_local_time(one.created_at),
                one.id,
                one.verdict,
                ", ".join(one.tools) or "-",
                cut(one.task, 70),
            )
            for one in found
        ]
        print_table(rows, header=("TIME", "ID", "RESULT", "TOOLS", "TASK"))
    return 0 if found else 1
