"""Log lines for people: they may hold what others wrote, and a terminal obeys none of it."""

import logging


class Readable(logging.Formatter):
    """A line as it would be, made harmless for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        from trunkline.text import printable

        return printable(super().format(record))


def make_bare_warnings_readable() -> None:
    """Those of commands that set up no logs: Python itself prints them then."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Readable("%(message)s"))
