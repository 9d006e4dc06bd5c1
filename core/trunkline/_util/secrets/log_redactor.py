"""Redacts secrets in logs: those with a recognizable form or name, and the actual values of this process's secrets.

A provider's error may repeat its input, and an exception may quote a URL that contains a key.
"""

import re
from collections.abc import Iterable, Mapping

from trunkline._util.secrets import REDACTION_MARK
from trunkline._util.secrets.redactor import Redactor

SECRET_VARIABLE = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.IGNORECASE)
"""The names of variables that contain secrets."""

MIN_LENGTH = 8
"""The smallest length of a value that is redacted, since ``1`` and ``true`` occur in every log."""


class LogRedactor:
    """Removes secrets from text before it is logged. ``environ`` is the process's environment, ``names`` are the
    variables that the configuration refers to as secrets, and ``values`` are further secrets, such as the home's
    token.
    """

    def __init__(
        self, environ: Mapping[str, str], names: Iterable[str] = (), values: Iterable[str] = ()
    ) -> None:
        self._secrets = Redactor()
        named = {*names, *filter(SECRET_VARIABLE.search, environ)}
        known = {*values, *(environ.get(name, "") for name in named)}
        long = sorted((value for value in known if len(value) >= MIN_LENGTH), key=len, reverse=True)
        own = "|".join(map(re.escape, long))
        self._own = re.compile(own) if own else None

    def redact(self, text: str) -> str:
        """Return the text with a mark in place of every secret."""
        if self._own is not None:
            text = self._own.sub(REDACTION_MARK, text)
        return self._secrets.redact(text)
