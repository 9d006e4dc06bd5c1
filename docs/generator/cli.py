"""The page of the command line: what ``--help`` says of every command that comes with the platform."""

import importlib
from collections.abc import Iterator

import click

from trunkline.cli.main import COMMANDS, cli

WIDTH = 96

INTRODUCTION = """
# The `trunkline` program

Settings lie in `~/.trunkline`, or in the folder that `TRUNKLINE_HOME` names. A command uses the platform that runs on
this home; when none runs, it starts one in its own process for as long as it needs. Errors are one sentence, mostly
with a hint, and an [exit status](errors.md). `TRUNKLINE_DEBUG=1` shows where an error comes from.
"""


def page() -> str:
    """The whole page."""
    rows = "\n".join(f"* [`trunkline {name}`](#trunkline-{name}): {line}" for name, line in COMMANDS.items())
    parts = [INTRODUCTION.strip(), rows]
    for name in COMMANDS:
        command = importlib.import_module(f"trunkline.cli.{name}").command
        parts += list(_sections(command, name, click.Context(cli, info_name="trunkline"), 2))
    return "\n\n".join(parts)


def _sections(command: click.Command, name: str, parent: click.Context, level: int) -> Iterator[str]:
    context = click.Context(
        command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
    )
    yield f"{'#' * level} {context.command_path}\n\n```text\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from _sections(found, inner, context, level + 1)
