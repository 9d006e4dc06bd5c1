"""Everything that is a secret in a text."""

import re
from collections.abc import Iterable

from trunkline._util.secrets import MARK, NAMES
from trunkline._util.secrets.assignment_patterns import LOGINS, may_log_in
from trunkline._util.secrets.key_patterns import LOOKS, may_hold_key
from trunkline._util.secrets.named_secrets import Named
from trunkline._util.secrets.table_secrets import Tables


class Secrets:
    """Finds secrets. ``names`` are what they go by; without any only keys with a look of their own are found."""

    def __init__(self, names: Iterable[str] = NAMES) -> None:
        self._named = Named(tuple(names))
        self._tables = Tables(self._named)

    def redacted(self, text: str) -> str:
        """The text with ``MARK`` in place of every secret; an equal text when there is none."""
        if may_hold_key(text):
            text = LOOKS.sub(MARK, text)
        if may_log_in(text):
            text = LOGINS.sub(self._without_password, text)
        if not self._named.may_be_in(text):
            return text
        for find in (self._named.spans, self._tables.spans):
            text = _marked(text, find(text))
        return text

    def _without_password(self, login: re.Match[str]) -> str:
        value = login["in_address"] or login["in_netrc"] or login["for_curl"]
        return login[0].removesuffix(value) + MARK if self._named.could_be(value) else login[0]


def _marked(text: str, secrets: Iterable[tuple[int, int]]) -> str:
    kept, at = [], 0
    for start, end in secrets:
        kept += [text[at:start], MARK]
        at = end
    return "".join([*kept, text[at:]])
