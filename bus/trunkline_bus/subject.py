"""Subject templates, from which every NATS subject is made. This module handles strings only and uses no NATS
client.
"""

import re
from collections.abc import Mapping

from trunkline_bus.errors import SubjectError

_LITERAL = re.compile(r"[A-Za-z0-9_-]+")
_HOLE = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Subject:
    """A validated subject template such as ``trunkline.cmd.memory.{block}.read``.

    Dots separate the tokens; each token is a literal or one ``{key}``. Subjects with equal templates are equal.
    """

    __slots__ = ("_pattern", "_tokens", "keys", "template")

    template: str
    keys: tuple[str, ...]

    def __init__(self, template: str) -> None:
        """Raises ``SubjectError`` if the template is malformed or names a key twice."""
        self.template = template
        self._tokens = tuple(_token(template, part) for part in template.split("."))
        self.keys = tuple(name for name, is_key in self._tokens if is_key)
        if len(set(self.keys)) != len(self.keys):
            raise SubjectError(f"subject template {template!r} names a key twice; give each key its own name")
        self._pattern: re.Pattern[str] | None = None

    def format(self, **keys: str) -> str:
        """Return the subject with every key filled in. Raises ``SubjectError`` for a missing, unknown or
        invalid key.
        """
        if len(keys) != len(self.keys):
            self._refuse_unknown(keys)
        parts = []
        for name, is_key in self._tokens:
            if not is_key:
                parts.append(name)
            elif name in keys:
                parts.append(self._checked(name, keys[name]))
            else:
                raise SubjectError(f"subject {self.template!r} needs the key {name!r}")
        return ".".join(parts)

    def wildcard_filter(self, **keys: str) -> str:
        """Return the subject with the given keys filled in and the wildcard ``*`` for each missing key."""
        self._refuse_unknown(keys)
        return ".".join(
            (self._checked(name, keys[name]) if name in keys else "*") if is_key else name
            for name, is_key in self._tokens
        )

    def parse(self, subject: str) -> dict[str, str]:
        """Return the keys of a subject that was made from this template. Raises ``SubjectError`` if the subject does
        not match.
        """
        # Compiled on first use: of a hundred templates a process parses the subjects of a few.
        if self._pattern is None:
            self._pattern = re.compile(r"\.".join(_group(name, is_key) for name, is_key in self._tokens))
        match = self._pattern.fullmatch(subject)
        if match is None:
            raise SubjectError(f"subject {subject!r} does not match the template {self.template!r}")
        return match.groupdict()

    def _refuse_unknown(self, keys: Mapping[str, str]) -> None:
        for name in keys:
            if name not in self.keys:
                raise SubjectError(f"subject {self.template!r} has no key {name!r}; it has {list(self.keys)}")

    def _checked(self, name: str, value: str) -> str:
        if not isinstance(value, str) or _KEY.fullmatch(value) is None:
            raise SubjectError(
                f"the key {name}={value!r} of {self.template!r} must be 1 to 64 of A-Z a-z 0-9 _ -; "
                "make a key from free text with key_of()"
            )
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subject) and other.template == self.template

    def __hash__(self) -> int:
        return hash(self.template)

    def __repr__(self) -> str:
        return f"Subject({self.template!r})"


def _token(template: str, part: str) -> tuple[str, bool]:
    hole = _HOLE.fullmatch(part)
    if hole is not None:
        return hole.group(1), True
    if _LITERAL.fullmatch(part) is None:
        raise SubjectError(
            f"subject template {template!r}: token {part!r} is neither a word of A-Z a-z 0-9 _ - nor one {{key}}"
        )
    return part, False


def _group(name: str, is_key: bool) -> str:
    return f"(?P<{name}>[A-Za-z0-9_-]{{1,64}})" if is_key else re.escape(name)
