"""Placeholders: what replaces a text in requests, and how it is put back into an answer, even in pieces. No I/O."""

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

DIGEST_CHARS = 12

NOTHING = r"(?!)"
"""An expression that matches nothing."""

_PLACEHOLDER = re.compile(rf"[A-Z][A-Z_]*_[0-9a-f]{{{DIGEST_CHARS}}}")


class Placeholders:
    """The placeholders of one request. A text has the same placeholder whenever the key is the same.

    A placeholder is made of letters, digits and underscores only, so that a model can repeat it in JSON, in a URL and
    in code. Without the key nobody can guess the placeholder of a text, or a text by its placeholder.
    """

    def __init__(self, key: bytes, labels: Iterable[str] = ()) -> None:
        self._key = key
        self._labels = frozenset(labels)
        """The labels of placeholders that stay as they are."""
        self._values: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._prefixes: set[str] | None = None

    def __bool__(self) -> bool:
        return bool(self._values)

    def items(self) -> Iterator[tuple[str, str]]:
        """Iterate over the placeholders and what they stand for."""
        yield from self._values.items()

    def update(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add placeholders that were made with the same key, with what they stand for."""
        for placeholder, value in pairs:
            self.add(placeholder, value)

    def add(self, placeholder: str, value: str) -> None:
        """Add a placeholder that was made with the same key."""
        self._values[placeholder] = value
        self._names[value] = placeholder
        self._prefixes = None

    def add_spelling(self, placeholder: str, text: str) -> None:
        """Add another spelling of what a placeholder stands for. The placeholder is put back as it was added."""
        self._names.setdefault(text, placeholder)

    def in_json(self) -> "Placeholders":
        """Return the placeholders for a JSON text, in which some characters are escaped."""
        escaped = Placeholders(self._key, self._labels)
        escaped.update((name, json.dumps(value, ensure_ascii=False)[1:-1]) for name, value in self.items())
        return escaped

    def placeholder_of(self, value: str) -> str | None:
        """Return the placeholder of a text, None if it has none."""
        return self._names.get(value)

    def pattern(self, least: int) -> re.Pattern[str]:
        """Return the expression that finds all texts of at least this length that have a placeholder."""
        values = sorted((one for one in self._names if len(one) >= least), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, values)) or NOTHING)

    def replace(self, label: str, text: str) -> str:
        """Return the placeholder of a text. Placeholders inside of the text are put back first. What looks like a
        placeholder with a known label as a whole stays: it is one that was sent before, and no secret.
        """
        if _PLACEHOLDER.fullmatch(text) and text[: -DIGEST_CHARS - 1] in self._labels:
            return text
        value = self.restore(text)
        mac = hmac.new(self._key, f"{label}:{value}".encode(errors="surrogatepass"), hashlib.sha256)
        placeholder = f"{label}_{mac.hexdigest()[:DIGEST_CHARS]}"
        self.add(placeholder, value)
        return placeholder

    def restore(self, text: str) -> str:
        """Return the text with each placeholder of this request put back. A text that only looks like one stays."""
        if not self._values or "_" not in text:
            return text
        return _PLACEHOLDER.sub(lambda found: self._restored(found[0]), text)

    def _restored(self, found: str) -> str:
        """Return what a placeholder stands for. The label of the match may have letters of the text before it."""
        for start in range(len(found) - DIGEST_CHARS):
            if (value := self._values.get(found[start:])) is not None:
                return found[:start] + value
        return found

    def restore_all(self, value: Any) -> Any:
        """Return a JSON value in which each text and each key is restored."""
        if isinstance(value, str):
            return self.restore(value)
        if isinstance(value, dict):
            return {self.restore(str(key)): self.restore_all(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.restore_all(one) for one in value]
        return value

    def incomplete_tail(self, text: str) -> int:
        """Return the number of characters at the end of the text that may be the beginning of a placeholder."""
        if self._prefixes is None:
            self._prefixes = {name[:end] for name in self._values for end in range(1, len(name))}
        longest = max(map(len, self._values), default=0) - 1
        for size in range(min(longest, len(text)), 0, -1):
            if text[-size:] in self._prefixes:
                return size
        return 0


class RestoringStream:
    """Restores a text that arrives in pieces. What may be the beginning of a placeholder is held back."""

    def __init__(self, placeholders: Placeholders) -> None:
        self._placeholders = placeholders
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return the text that is certain by now, restored."""
        text = self._held + piece
        tail = self._placeholders.incomplete_tail(text)
        self._held = text[len(text) - tail :]
        return self._placeholders.restore(text[: len(text) - tail])

    def finish(self) -> str:
        """Return the text that was held back."""
        text, self._held = self._held, ""
        return self._placeholders.restore(text)
