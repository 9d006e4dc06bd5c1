"""Parse and match ``robots.txt`` by RFC 9309. Pure.

Patterns are matched piece by piece, in time that grows with their length alone: they are a stranger's.
"""

import re
from collections.abc import Iterator

import msgspec

MOST_BYTES = 500 * 1024
"""Bytes that are read of it (RFC 9309, 2.5)."""

LONGEST_DELAY = 5.0
"""Seconds; a site that wants longer pauses gets these."""

_TOKEN = re.compile(r"[A-Za-z_-]+")


class RobotsRule(msgspec.Struct, frozen=True):
    """A pattern, and whether what it fits is allowed."""

    pattern: str
    allow: bool

    def matches(self, target: str) -> bool:
        """Report whether a path with its query fits: ``*`` is any text, ``$`` the end."""
        whole = self.pattern.endswith("$")
        first, *rest = self.pattern.removesuffix("$").split("*")
        if not target.startswith(first):
            return False
        at = len(first)
        if not rest:
            return not whole or at == len(target)
        for piece in rest[:-1]:
            found = target.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
        if whole:
            return target.endswith(rest[-1]) and len(target) - len(rest[-1]) >= at
        return target.find(rest[-1], at) >= 0


class RobotsPolicy(msgspec.Struct, frozen=True):
    """The rules for one user agent. ``delay`` is the number of seconds between two requests."""

    rules: tuple[RobotsRule, ...] = ()
    delay: float = 0.0

    def is_allowed(self, target: str) -> bool:
        """Report whether a path may be asked for: the longest pattern that fits counts, of equal ones the one that
        allows.
        """
        fitting = [(len(rule.pattern), rule.allow) for rule in self.rules if rule.matches(target)]
        return max(fitting)[1] if fitting else True


def parse_robots(text: str, user_agent: str) -> RobotsPolicy:
    """Return the rules for a user agent, matched by the part of its name before the version."""
    found = _TOKEN.match(user_agent)
    mine = found[0].lower() if found else ""
    own: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    named = False
    for names, lines in _groups(text):
        if mine in names:
            named = True
            own += lines
        elif "*" in names:
            others += lines
    return _parse_group(own if named else others)


def _groups(text: str) -> Iterator[tuple[set[str], list[tuple[str, str]]]]:
    """Whom each group of lines is for, and its lines."""
    names, lines = set[str](), list[tuple[str, str]]()
    for line in text.splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key == "user-agent":
            if lines:
                yield names, lines
                names, lines = set(), []
            found = _TOKEN.match(value)
            names.add("*" if value.startswith("*") else found[0].lower() if found else "")
        elif key in ("allow", "disallow", "crawl-delay") and names:
            lines.append((key, value))
    yield names, lines


def _parse_group(lines: list[tuple[str, str]]) -> RobotsPolicy:
    rules = tuple(RobotsRule(value, key == "allow") for key, value in lines if key != "crawl-delay" and value)
    delays = [_seconds(value) for key, value in lines if key == "crawl-delay"]
    return RobotsPolicy(rules, min(LONGEST_DELAY, max(delays, default=0.0)))


def _seconds(text: str) -> float:
    return float(text) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text) else 0.0
