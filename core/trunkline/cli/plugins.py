"""``trunkline plugins``: list what is installed, bring plugins in and out, and begin one of one's own."""

from typing import TYPE_CHECKING

import click

from trunkline.cli import installing
from trunkline.cli.command import Group

if TYPE_CHECKING:
    from trunkline.plugins import LoadReport

EXAMPLES = """
trunkline plugins list
trunkline plugins install trunkline-weather
trunkline plugins disable weather
trunkline plugins new tool weather
"""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """List the plugins, bring them in and out, or begin a new one."""


for _one in (installing.install, installing.remove, installing.disable, installing.enable):
    command.add_command(_one)


@command.command("list", examples="trunkline plugins list\ntrunkline plugins list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_plugins(as_json: bool) -> None:
    """List the plugins: version, where each comes from, its hooks, and why one is not loaded."""
    from trunkline.cli.output import json_out
    from trunkline.config import load_config
    from trunkline.plugins import Plugins

    report = Plugins.load(load_config()).examined()
    if as_json:
        json_out({"plugins": report.plugins, "troubles": report.troubles, "missing": report.missing})
        return
    _print_table(report)


def _print_table(report: "LoadReport") -> None:
    from trunkline.cli.output import table

    rows = [
        (state.name, state.version, state.owner, state.status, _hooks(state.hooks))
        for state in report.plugins
    ]
    table(rows, header=("PLUGIN", "VERSION", "DISTRIBUTION", "STATUS", "HOOKS"))
    for state in report.unusable:
        click.echo(
            f"\n{state.name} is {state.status}: {state.reason}"
            + (f"\n  -> {state.hint}" if state.hint else "")
        )
    for trouble in report.troubles:
        click.echo(f"\n{trouble.owner}: {trouble.hook}: {trouble.reason}")
    for name in report.missing:
        click.echo(f"\n{name} is required and not loaded.")


def _hooks(names: tuple[str, ...]) -> str:
    return ", ".join(name.removeprefix("trunkline_") for name in names) or "-"


@command.command(
    "new", examples="trunkline plugins new tool weather\ntrunkline plugins new tool weather --to ~/code"
)
@click.argument("kind", type=click.Choice(["tool"]))
@click.argument("name")
@click.option("--to", default=".", type=click.Path(), help="The folder in which to make it.  [default: here]")
def new_plugin(kind: str, name: str, to: str) -> None:
    """Write a working package for a plugin called NAME, with a test that passes."""
    from pathlib import Path

    from trunkline.cli.scaffold import write_tool_plugin

    made = write_tool_plugin(name, Path(to).expanduser())
    click.echo(f"Made {made}")
    click.echo(f"Try it:  pip install -e {made} && pytest {made}")
    click.echo(
        f'Then:    trunkline plugins list, and in "trunkline chat": /tool {name.replace("-", "_")}_hello'
    )
