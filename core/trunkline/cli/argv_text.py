"""Check that the arguments of the command line are valid text, and refuse any other before a command reads it."""

import os
from collections.abc import Sequence

import click


def require_text(words: Sequence[str]) -> None:
    """Refuse bytes that are no UTF-8, unless they name a file that is there. Raises click.UsageError.

    Python hands such bytes over as half characters (PEP 383), which no message of the bus and no file can hold.
    """
    for number, word in enumerate(words, start=1):
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            if not os.path.lexists(word):
                seen = word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
                raise click.UsageError(
                    f"Argument {number}, '{seen}', is no text: its bytes are not UTF-8. Is the terminal set to UTF-8?"
                ) from None
