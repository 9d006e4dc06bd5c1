"""The page of the command line: what ``--help`` says of every command, those of bundled plugins too."""

from collections.abc import Iterator
from tempfile import TemporaryDirectory

import click

from trunkline.cli.main import COMMANDS, LINE, cli
from trunkline.config import load_config
from trunkline.plugins import Plugins
from trunkline.plugins.discovery import bundled_distributions

WIDTH = 96
INTRODUCTION = """
# The `trunkline` program

Settings are in `~/.trunkline`, or in the folder that `TRUNKLINE_HOME` names. A command uses the platform that runs on
this home. If none runs, the command starts one in its own process until it ends. An error is one sentence, usually
with a hint, and an [exit status](errors.md). `TRUNKLINE_DEBUG=1` shows where an error comes from.
"""


def page() -> str:
    """The whole page."""
    added = _of_plugins()
    lines = COMMANDS | {name: command.get_short_help_str(LINE) for name, command in added.items()}
    rows = "\n".join(f"* [`trunkline {name}`](#trunkline-{name}): {line}" for name, line in lines.items())
    parts = [INTRODUCTION.strip(), rows]
    root = click.Context(cli, info_name="trunkline", **cli.context_settings)
    for name in lines:
        command = added.get(name) or cli.get_command(root, name)
        assert command is not None
        parts += list(_sections(command, name, root, 2))
    return "\n\n".join(parts)


def _of_plugins() -> dict[str, click.Command]:
    """The commands of the bundled plugins, with nothing set."""
    bundled = bundled_distributions()
    with TemporaryDirectory() as home:
        plugins = Plugins.load(load_config(environ={"TRUNKLINE_HOME": home}))
    found = {str(one.item.name): one.item for one in plugins.commands() if one.owner in bundled}
    return dict(sorted(found.items()))


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
