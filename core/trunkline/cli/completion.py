"""``trunkline completion SHELL``: prints the completion script for a shell."""

import click

from trunkline.cli.command import Command

EXAMPLES = """
eval "$(trunkline completion bash)"
trunkline completion zsh > ~/.zfunc/_trunkline
trunkline completion fish > ~/.config/fish/completions/trunkline.fish
"""

VARIABLE = "_TRUNKLINE_COMPLETE"
"""The variable with which the shell requests completions. click reads it before any command runs."""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script with which SHELL completes commands, options, blocks, chunks and memory paths.

    Add the line for your shell to its startup file.
    """
    from click.shell_completion import get_completion_class

    from trunkline.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(cli, {}, "trunkline", VARIABLE)
    click.echo(made.source_template % made.source_vars())
