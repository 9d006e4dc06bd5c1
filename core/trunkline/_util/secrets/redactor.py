"""Finds all secrets in a text and redacts them."""

import re
from collections.abc import Iterable

from trunkline._util.secrets import REDACTION_MARK, SECRET_NAMES
from trunkline._util.secrets.assignment_patterns import LOGIN_PASSWORDS, may_hold_login
from trunkline._util.secrets.key_patterns import KEY_REGEX, may_hold_key
from trunkline._util.secrets.named_secrets import NamedSecretFinder
from trunkline._util.secrets.table_secrets import TableSecretFinder


class Redactor:
    """Redacts secrets. ``names`` are names of secrets; without names, only keys with a recognizable form are found."""

    def __init__(self, names: Iterable[str] = SECRET_NAMES) -> None:
        self._named = NamedSecretFinder(tuple(names))
        self._tables = TableSecretFinder(self._named)

    def redact(self, text: str) -> str:
        """Return the text with ``MARK`` in place of every secret; an equal text when there is none."""
        if may_hold_key(text):
            text = KEY_REGEX.sub(REDACTION_MARK, text)
        if may_hold_login(text):
            text = LOGIN_PASSWORDS.sub(self._without_password, text)
        if not self._named.may_match(text):
            return text
        for find in (self._named.spans, self._tables.spans):
            text = _marked(text, find(text))
        return text

    def _without_password(self, login: re.Match[str]) -> str:
        value = login["in_address"] or login["in_netrc"] or login["for_curl"]
        return login[0].removesuffix(value) + REDACTION_MARK if self._named.could_be(value) else login[0]


def _marked(text: str, secrets: Iterable[tuple[int, int]]) -> str:
    kept, at = [], 0
    for start, end in secrets:
        kept += [text[at:start], REDACTION_MARK]
        at = end
    return "".join([*kept, text[at:]])
