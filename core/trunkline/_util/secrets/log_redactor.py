"""Redacts secrets in logs: those with a recognizable form or name, and the actual values of this process's secrets.

A provider's error may repeat its input, and an exception may quote a URL that contains a key.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

from trunkline._util.secrets import REDACTION_MARK
from trunkline._util.secrets.redactor import Redactor

SECRET_VARIABLE = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.IGNORECASE)
"""The names of variables that contain secrets."""

MIN_LENGTH = 8
"""The smallest length of a value that is redacted, since ``1`` and ``true`` occur in every log."""

_URL_SAFE = str.maketrans("+/", "-_")


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
        forms = {form for value in known if len(value) >= MIN_LENGTH for form in _forms(value)}
        long = sorted((form for form in forms if len(form) >= MIN_LENGTH), key=len, reverse=True)
        own = "|".join(map(re.escape, long))
        self._own = re.compile(own) if own else None

    def redact(self, text: str) -> str:
        """Return the text with a mark in place of every secret."""
        if self._own is not None:
            text = self._own.sub(REDACTION_MARK, text)
        return self._secrets.redact(text)


def _forms(value: str) -> Iterator[str]:
    """Yield the secret as it is, as a part of a URL, and as a part of a text in Base64, wherever it begins there: as in
    the header of Basic authentication, which a vendor's error may quote.
    """
    raw = value.encode(errors="replace")  # a variable may have bytes that are no text
    yield from (value, quote(raw), quote(raw, safe=""))
    for before, foreign in enumerate((0, 2, 3)):
        whole = (before + len(raw)) // 3 * 3
        encoded = b64encode((bytes(before) + raw)[:whole]).decode()[foreign:]
        yield from (encoded, encoded.translate(_URL_SAFE))
