"""Commands whose ``--help`` ends with examples, and groups that import a command only when it is used."""

import importlib
import keyword
from typing import Any

import click
from click.shell_completion import CompletionItem

from trunkline.cli.command_synonyms import suggest_command
from trunkline.cli.completion_types import complete_by_name

Formatter = click.HelpFormatter


class Command(click.Command):
    """A command with ``examples``, one per line, which are printed unchanged."""

    def __init__(self, *arguments: Any, examples: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples
        complete_by_name(self.params)

    def format_epilog(self, ctx: click.Context, formatter: Formatter) -> None:
        """Print the examples."""
        write_examples(self.examples, formatter)


LIST = "list"
"""The default command of a group."""


class Group(click.Group):
    """A group of ``Command`` with ``examples``. If the group has a command ``list``, that is the default command."""

    command_class = Command

    def __init__(self, *arguments: Any, examples: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with ``list`` inserted if no command is named, so that the options of ``list`` are
        accepted too.
        """
        if not self._says_what(ctx, args) and self._can_list(ctx):
            args = [LIST, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the named command. For an unknown name, raise an error that suggests similar commands."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            word, names = error.command_name, self.list_commands(ctx)
            meant = suggest_command(word, names)
            if meant is None:
                raise click.NoSuchCommand(word, possibilities=names, ctx=ctx) from None
            message = f"No such command {word!r}. Did you mean {meant!r}?"
            raise click.NoSuchCommand(word, message, ctx=ctx) from None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the parts of the usage line. The command is in brackets if it is optional."""
        pieces = super().collect_usage_pieces(ctx)
        optional = self._can_list(ctx)
        return [piece.replace("COMMAND", "[COMMAND]") if optional else piece for piece in pieces]

    def format_help_text(self, ctx: click.Context, formatter: Formatter) -> None:
        """Write the description of the group, and what the group does without a command."""
        super().format_help_text(ctx, formatter)
        if self._can_list(ctx):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(f'Without a command it does what "{LIST}" does.')

    def _can_list(self, ctx: click.Context) -> bool:
        return LIST in self.list_commands(ctx)

    def _says_what(self, ctx: click.Context, words: list[str]) -> bool:
        """Report whether the first argument is a command or an option of the group. Also true during shell
        completion.
        """
        own = {option for parameter in self.get_params(ctx) for option in parameter.opts}
        return ctx.resilient_parsing or any(not word.startswith("-") or word in own for word in words[:1])

    def format_epilog(self, ctx: click.Context, formatter: Formatter) -> None:
        """Print the examples."""
        write_examples(self.examples, formatter)


class DefaultCommandGroup(Group):
    """A group with a ``default`` command, which is used if the first argument is not a command of the group."""

    def __init__(self, *arguments: Any, default: str, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.default = default
        """The name of the default command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with the default command inserted if no command is named."""
        own = {option for parameter in self.get_params(ctx) for option in parameter.opts}
        if args and args[0] not in self.commands and args[0] not in own:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the matching commands, and the completions of the default command's first argument."""
        first = self.commands[self.default].params[0]
        return [*super().shell_complete(ctx, incomplete), *first.shell_complete(ctx, incomplete)]


class LazyGroup(Group):
    """A group whose command NAME is ``PACKAGE.NAME:command``, imported when it is used (``import`` is ``import_``).

    ``table`` contains the names in the order of the help, each with the line that the help shows.
    """

    def __init__(self, *arguments: Any, package: str, table: dict[str, str], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._package = package
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        return [*self._table]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command; None when there is none of that name."""
        if cmd_name not in self._table:
            return None
        module = cmd_name.replace("-", "_") + ("_" if keyword.iskeyword(cmd_name) else "")
        found: click.Command = importlib.import_module(f"{self._package}.{module}").command
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the matching names from the table, without imports."""
        found = [
            CompletionItem(name, help=line) for name, line in self.help_lines() if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: Formatter) -> None:
        """Write the list of commands from the table."""
        with formatter.section("Commands"):
            formatter.write_dl(self.help_lines())

    def help_lines(self) -> list[tuple[str, str]]:
        """Return the names, each with its help line."""
        return [*self._table.items()]


def write_examples(examples: str, formatter: Formatter) -> None:
    """Print examples under a heading, without wrapping."""
    lines = [line.strip() for line in examples.strip().splitlines()]
    if lines:
        with formatter.section("Examples"):
            for line in lines:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
