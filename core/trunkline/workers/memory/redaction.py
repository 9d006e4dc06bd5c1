"""Keys and passwords stay out of memory: a rule that sees every change before it is committed.

``api_key=...``, ``token: ...`` and the like become ``[REDACTED]``, in every file of text and in every layer. It is a
net under people and models who paste such things, and text alone cannot tell a password from a word: what is plainly
a reference, a type, a call or a placeholder is left as it is, so that notes and code about secrets survive.
"""

from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.memory.store import Change


class RedactionRule:
    """The rule: a change without the ``secrets`` in what it adds."""

    def __init__(self, secrets: Redactor) -> None:
        self._secrets = secrets

    def __call__(self, change: Change) -> Change:
        """The change without the secrets in what it adds; the same one when there are none."""
        files = {path: self._file(data, change.known.get(path, 0)) for path, data in change.files.items()}
        if all(files[path] is data for path, data in change.files.items()):
            return change
        return Change(files, actor=change.actor, reason=change.reason, scope=change.scope, known=change.known)

    def redact(self, text: str) -> str:
        """A text without the secrets in it."""
        return self._secrets.redact(text)

    def _file(self, data: bytes | None, known: int) -> bytes | None:
        """Only what is new of a file that grew is looked at; a line is looked at whole."""
        if data is None:
            return None
        start = data.rfind(b"\n", 0, known) + 1 if known else 0
        fresh = data[start:]
        try:
            text = fresh.decode("utf-8")
        except UnicodeDecodeError:
            return data
        cleaned = self.redact(text)
        return data if cleaned == text else data[:start] + cleaned.encode("utf-8")
