"""Commands whose ``--help`` ends with examples. Only how help looks is in here."""

from typing import Any

import click

Formatter = click.HelpFormatter


class Command(click.Command):
    """A command with ``examples``: a line each, printed as they are written."""

    def __init__(self, *arguments: Any, examples: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples

    def format_epilog(self, context: click.Context, formatter: Formatter) -> None:
        """The examples."""
        write_examples(self.examples, formatter)


class Group(click.Group):
    """A group of ``Command`` with ``examples`` of its own."""

    command_class = Command

    def __init__(self, *arguments: Any, examples: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples

    def format_epilog(self, context: click.Context, formatter: Formatter) -> None:
        """The examples."""
        write_examples(self.examples, formatter)


def write_examples(examples: str, formatter: Formatter) -> None:
    """Print examples under their heading, never wrapped."""
    lines = [line.strip() for line in examples.strip().splitlines()]
    if lines:
        with formatter.section("Examples"):
            for line in lines:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
