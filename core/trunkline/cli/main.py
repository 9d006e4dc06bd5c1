"""The ``trunkline`` program: finds the command and prints its errors. It does no work of any command."""

import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import click

from trunkline.cli.command import LazyGroup
from trunkline.cli.entry import use_default_sigint, use_python_sigint
from trunkline.cli.errors import run_and_report
from trunkline.cli.gc_tuning import raise_gc_thresholds
from trunkline.cli.log_format import install_warning_formatter
from trunkline.errors import TrunklineError
from trunkline.home.releases import become_release_in_use

log = logging.getLogger(__name__)

COMMANDS: dict[str, str] = {
    "chat": "Talk with an agent in this terminal.",
    "attach": "Watch and continue a conversation that other channels take part in.",
    "say": "Send one message and print the answer.",
    "up": "Run the platform: the bus and all five workers.",
    "service": "Run the platform in the background, at every boot.",
    "certificate": "Make a certificate, so that other machines reach the gateway with TLS.",
    "run": "Run one worker as a process.",
    "init": "Choose a model, and set up the home folder and a block.",
    "conversations": "List, rename, pin, archive, export and open conversations.",
    "context": "Show what the model saw in a conversation, and the tokens of each part.",
    "approvals": "List the calls that wait for your approval, and decide them.",
    "agents": "List the agents that work for other agents, and end them.",
    "blocks": "Create, change, start, stop, reset, archive and delete blocks.",
    "permissions": "Show and change the permissions of agents.",
    "open": "Open the web app in a browser, signed in.",
    "channels": "List, test and pause channels, and link yourself to them.",
    "pair": "Show a code that signs in another browser, phone or program.",
    "auth": "Decide who else may use Trunkline: identities, shared blocks, tokens.",
    "audit": "Show the audit log.",
    "results": "Show tool results that were too long for the conversation.",
    "memory": "Add files to memory, read and search it.",
    "costs": "Show what models cost, by block, day, model, purpose or conversation.",
    "models": "List the models that can be asked, with windows, prices and abilities.",
    "plugins": "List, install and remove plugins, or create a new one.",
    "config": "Show every setting and its origin.",
    "doctor": "Check the installation and report how to fix it.",
    "trace": "Draw the timeline of a turn.",
    "replay": "Replay a recorded turn and compare the result.",
    "fork": "Repeat a turn from one of its steps, in a new conversation.",
    "panic": "Stop every program, turn and model call now, until released.",
    "top": "Watch the platform: workers, partitions, turns, streams, errors.",
    "partitions": "Show or change the number of inbox partitions.",
    "dead-letters": "Show messages that no worker could handle, and send them again.",
    "remote": "Use the tools of other hosts.",
    "completion": "Print the script that completes commands with the Tab key.",
    "update": "Install a newer release, try it, and change to it; or go back.",
    "backup": "Write memory, its history and the settings to one archive.",
    "restore": "Unpack a backup into the home folder.",
    "version": "Print the version.",
}
"""The commands in the order of the help, with the line that the help shows without importing them.

The command NAME is ``trunkline.cli.NAME:command``, with ``_`` for ``-``.
"""


LINE = 100
"""Largest number of characters of the help line of a plugin's command. The help wraps it at the terminal's width."""


class RootGroup(LazyGroup):
    """The built-in commands, followed by those of plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        return [*COMMANDS, *sorted(set(plugin_commands()) - set(COMMANDS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command; None when there is none of that name."""
        return super().get_command(ctx, cmd_name) or plugin_commands().get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command. With a configuration that cannot be read plugins have no commands: for an unknown name
        the reason is raised (ConfigError), because "no such command" would hide it.
        """
        if args and not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            from trunkline.config import load_config

            load_config()
        return super().resolve_command(ctx, args)

    def help_lines(self) -> list[tuple[str, str]]:
        """Return the names, each with its help line."""
        plugins = plugin_commands()
        added = sorted(set(plugins) - set(COMMANDS))
        return [*super().help_lines(), *((name, plugins[name].get_short_help_str(LINE)) for name in added)]


@click.group(
    cls=RootGroup,
    package="trunkline.cli",
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="trunkline", prog_name="trunkline", message="%(prog)s %(version)s")
def cli() -> None:
    """Trunkline: your own agents, on your own machine.

    Settings are in ~/.trunkline (or in TRUNKLINE_HOME). Start with "trunkline chat".
    """


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its status: 0, 1 for an error, 2 for wrong usage, 130 for Ctrl-C."""
    if arguments is None:
        become_release_in_use(_home(), sys.argv[1:])
    raise_gc_thresholds()
    install_warning_formatter()
    use_python_sigint()
    status = run_and_report(lambda: invoke(arguments), debug=os.environ.get("TRUNKLINE_DEBUG") == "1")
    use_default_sigint()
    if threading.active_count() > 1:
        from trunkline.runtime.signals import exit_process

        exit_process(status)
    sys.exit(status)


def _home() -> Path:
    """Return the home folder, as ``config.resolve_home`` does, without the imports of that."""
    named = os.environ.get("TRUNKLINE_HOME")
    return Path(named).expanduser() if named else Path.home() / ".trunkline"


def invoke(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit status. Errors are raised."""
    run: Callable[..., object] = cli.main
    require_text(sys.argv[1:] if arguments is None else arguments)
    status = run(args=arguments, prog_name="trunkline", standalone_mode=False)
    return status if isinstance(status, int) else 0


def require_text(words: Sequence[str]) -> None:
    """Refuse arguments that are not UTF-8, unless they name an existing file. Raises click.UsageError.

    Python represents such bytes as lone surrogates (PEP 383), which no message of the bus and no text file can
    contain.
    """
    for number, word in enumerate(words, start=1):
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            if not os.path.lexists(word):
                seen = word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
                raise click.UsageError(
                    f"Argument {number}, '{seen}', is not text: its bytes are not UTF-8. Is the terminal set to UTF-8?"
                ) from None


@cache
def plugin_commands() -> dict[str, click.Command]:
    """Return the plugins' commands by name. Without a valid configuration there are none. A plugin that fails loses
    only its own commands.
    """
    from trunkline.config import load_config
    from trunkline.plugins import Plugins

    try:
        plugins = Plugins.load(load_config())
    except TrunklineError as error:
        log.debug("no commands of plugins: %s", error)
        return {}
    return {owned.item.name: owned.item for owned in plugins.commands() if owned.item.name}


if __name__ == "__main__":
    main()
