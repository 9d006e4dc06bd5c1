"""Asks a person for confirmation. Without a terminal the answer is never yes."""

import sys

import click

from trunkline.errors import TrunklineError


def confirm(question: str, *, otherwise: str = "--yes", done: str = "done") -> None:
    """Return when a person at a terminal has confirmed. ``otherwise`` is the flag that replaces the confirmation, and
    ``done`` the verb of the error. An answer from a pipe is not accepted: a script can give the flag.

    Raises:
        TrunklineError: there is no terminal.
        click.Abort: the person did not confirm.
    """
    require_terminal(otherwise, done=done)
    click.confirm(question, abort=True, err=True)


def agrees(question: str) -> bool:
    """Return whether a person at a terminal agrees, which Enter does.

    Raises:
        TrunklineError: there is no terminal.
        click.Abort: Ctrl-C or the end of the input.
    """
    require_terminal("--yes")
    return click.confirm(question, default=True, err=True)


def require_terminal(otherwise: str, *, done: str = "done") -> None:
    """Raise TrunklineError when standard input is not a terminal."""
    if not sys.stdin.isatty():
        raise TrunklineError(
            f"Confirmation needs a terminal, so nothing was {done}.",
            hint=f"Give {otherwise} to skip the confirmation.",
        )
