"""Asking a person whether something is to be done. Nobody is taken to agree because nobody is there."""

import sys

import click

from trunkline.errors import TrunklineError


def confirm(question: str, *, otherwise: str = "--yes", done: str = "done") -> None:
    """Return once a person at a terminal has said yes. ``otherwise`` is what decides it where nobody can be asked, and
    ``done`` what was not done then. A yes out of a pipe counts for nothing: whoever sends one can give the flag.

    Raises:
        TrunklineError: there is no terminal.
        click.Abort: the person did not say yes.
    """
    require_terminal(otherwise, done=done)
    click.confirm(question, abort=True, err=True)


def require_terminal(otherwise: str, *, done: str = "done") -> None:
    """Raises TrunklineError where there is no terminal to ask at."""
    if not sys.stdin.isatty():
        raise TrunklineError(
            f"Confirmation needs a terminal, so nothing was {done}.",
            hint=f"Give {otherwise} to skip the confirmation.",
        )
