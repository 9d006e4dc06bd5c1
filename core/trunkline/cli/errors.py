"""Print errors on the command line: one sentence, a hint, an exit status, and no traceback."""

import sys
import traceback
from collections.abc import Callable

import click

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def run_and_report(run: Callable[[], int], *, debug: bool = False) -> int:
    """Call a function, print its error to standard error, and return the exit status.

    ``debug`` (TRUNKLINE_DEBUG=1) also prints the traceback.
    """
    try:
        return run()
    except (KeyboardInterrupt, click.Abort):
        click.echo(err=True)
        return INTERRUPTED
    except BrokenPipeError:
        _close_output()
        return FAILED
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except Exception as error:
        if debug:
            traceback.print_exception(error)
        return _show(_leaf(error))


def _leaf(error: BaseException) -> BaseException:
    """Return the only exception inside nested groups; the group if it has several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _show(error: BaseException) -> int:
    from trunkline.cli.output import print_text
    from trunkline.errors import TrunklineError

    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    sentence, hint = explain(error)
    print_text(f"Error: {sentence}", err=True)
    if hint:
        print_text(f"Hint: {hint}", err=True)
    return error.exit_status if isinstance(error, TrunklineError) else FAILED


HINTS = {
    "too_large": 'A message may have gateway.max_content bytes; "trunkline config" shows how many that are.'
}
"""Hints for refusals whose sentence is fixed."""


def explain(error: BaseException) -> tuple[str, str]:
    """Return a sentence and a hint for an error."""
    from trunkline.errors import TrunklineError
    from trunkline_bus import BusError, NoResponders, RemoteFault

    if isinstance(error, TrunklineError):
        return error.sentence, error.hint
    if isinstance(error, RemoteFault):
        return error.message, HINTS.get(error.code, "")
    if isinstance(error, NoResponders):
        return (
            f"No worker answers: {error}.",
            'See "trunkline doctor", or start the platform with "trunkline up".',
        )
    if isinstance(error, BusError):
        from trunkline.runtime.connection_settings import connection_hint

        return str(error), connection_hint(error)
    return (
        f"Something went wrong inside Trunkline ({type(error).__name__}: {error}).",
        "Set TRUNKLINE_DEBUG=1 to see where, and please report it.",
    )


def _close_output() -> None:
    """Handle a closed pipe: prevent Python's error message at exit."""
    try:
        sys.stdout.close()
    except BrokenPipeError:
        return
