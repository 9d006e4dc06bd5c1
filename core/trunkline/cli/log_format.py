"""Log lines: they may hold what others wrote. No secret stands in one, and a terminal obeys none of it."""

import logging
import os
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.secrets.log_redactor import LogRedactor
    from trunkline.config import Config


class RedactingFormatter(logging.Formatter):
    """A formatter that can take secrets out of what it is given; with a ``config`` those that it names too."""

    def __init__(
        self, form: str | None = None, times: str | None = None, *, config: "Config | None" = None
    ) -> None:
        super().__init__(form, times)
        self._config = config

    @cached_property
    def redactor(self) -> "LogRedactor":
        """Made with the first line: most commands log none."""
        from trunkline._util.secrets.log_redactor import LogRedactor

        if self._config is None:
            return LogRedactor(os.environ)
        return self._config.redactor()


class TerminalFormatter(RedactingFormatter):
    """A line as it would be, without secrets and made harmless for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text, with its traceback."""
        from trunkline._util.text import printable

        return printable(self.redactor.redact(super().format(record)))


def install_warning_formatter() -> None:
    """Those of commands that set up no logs: Python itself prints them then."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(TerminalFormatter("%(message)s"))
