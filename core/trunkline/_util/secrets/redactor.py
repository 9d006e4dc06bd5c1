"""Finds all secrets in a text and redacts them."""

import re
from collections.abc import Callable, Iterable

from trunkline._util.secrets import REDACTION_MARK, SECRET_NAMES
from trunkline._util.secrets.assignment_patterns import LOGIN_PASSWORDS, may_hold_login
from trunkline._util.secrets.key_patterns import KEY_REGEX, may_hold_key
from trunkline._util.secrets.named_secrets import NamedSecretFinder
from trunkline._util.secrets.table_secrets import TableSecretFinder

Substitute = Callable[[str], str]
"""Returns the text that replaces a secret."""


class Redactor:
    """Redacts secrets. ``names`` are names of secrets; without names, only keys with a recognizable form are found.

    Guarantees: a text without secrets is returned as it is. The same text has the same secrets each time.

    Not guaranteed: that every secret is found. One without a known form, and without a name beside it, is not.
    """

    def __init__(self, names: Iterable[str] = SECRET_NAMES) -> None:
        self._named = NamedSecretFinder(tuple(names))
        self._tables = TableSecretFinder(self._named)

    def redact(self, text: str) -> str:
        """Return the text with ``MARK`` in place of every secret; an equal text when there is none. Raises nothing."""
        return self.replace(text, lambda secret: REDACTION_MARK)

    def replace(self, text: str, substitute: Substitute) -> str:
        """Return the text with each secret replaced by what ``substitute`` returns for it. A text that replaced one
        secret may be a part of the next one. Raises what ``substitute`` raises.
        """
        if may_hold_key(text):
            text = KEY_REGEX.sub(lambda key: substitute(key[0]), text)
        if may_hold_login(text):
            text = LOGIN_PASSWORDS.sub(lambda login: self._without_password(login, substitute), text)
        if not self._named.may_match(text):
            return text
        for find in (self._named.spans, self._tables.spans):
            text = _replaced(text, find(text), substitute)
        return text

    def _without_password(self, login: re.Match[str], substitute: Substitute) -> str:
        value = login["in_address"] or login["in_netrc"] or login["for_curl"]
        if not self._named.could_be(value):
            return login[0]
        return login[0].removesuffix(value) + substitute(value)


def _replaced(text: str, secrets: Iterable[tuple[int, int]], substitute: Substitute) -> str:
    kept, at = [], 0
    for start, end in secrets:
        kept += [text[at:start], substitute(text[start:end])]
        at = end
    return "".join([*kept, text[at:]])
