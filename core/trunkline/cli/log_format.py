"""Formats log lines, which may contain text from outside. Secrets are removed, and terminal control characters are
made harmless.
"""

import logging
import os
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.secrets.log_redactor import LogRedactor
    from trunkline.config import Config


class RedactingFormatter(logging.Formatter):
    """A formatter with a redactor of secrets. With a ``config``, it also removes the secrets that the configuration
    names.
    """

    def __init__(
        self, fmt: str | None = None, datefmt: str | None = None, *, config: "Config | None" = None
    ) -> None:
        super().__init__(fmt, datefmt)
        self._config = config

    @cached_property
    def redactor(self) -> "LogRedactor":
        """The redactor. It is created with the first line, because most commands log nothing."""
        from trunkline._util.secrets.log_redactor import LogRedactor

        if self._config is None:
            return LogRedactor(os.environ)
        return self._config.redactor()


class TerminalFormatter(RedactingFormatter):
    """Formats lines for a terminal, without secrets and control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text, with its traceback."""
        from trunkline._util.text import printable

        return printable(self.redactor.redact(super().format(record)))


def install_warning_formatter() -> None:
    """Format the warnings of commands that configure no logging. Python prints these itself."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(TerminalFormatter("%(message)s"))
