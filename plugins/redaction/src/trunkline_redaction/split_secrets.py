"""Secrets that are cut in two: at the beginning or end of a text, or between two messages. No I/O."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from trunkline import Message

Scan = Callable[[str], tuple[str, tuple[tuple[str, str], ...]]]
"""Returns a text with placeholders, and each placeholder with what it stands for."""

MIN_PART = 8
"""Characters of a part that is recognized by a secret that stands elsewhere in the request."""

REACH = 256
"""Characters before and after a cut that are examined."""


class SplitSecrets:
    """The parts of secrets in the texts of one request."""

    def __init__(self) -> None:
        self._ends: dict[str, str] = {}
        """The part at the end of a text, and below that at the beginning of one."""
        self._begins: dict[str, str] = {}
        self._prefixes: set[str] = set()
        self._suffixes: set[str] = set()

    def find_between(self, messages: Sequence[Message], scan: Scan) -> None:
        """Find secrets that begin in one message and end in the next one, or in the next one of the same role."""
        for first, second in _neighbours(messages):
            if parts := _spanning(first, second, scan):
                self._ends[first], self._begins[second] = parts

    def add_values(self, values: Iterable[str]) -> None:
        """Add secrets that stand in the request as a whole: a text may end within a copy of one, or begin in it."""
        for value in values:
            for size in range(MIN_PART, min(len(value), REACH)):
                self._prefixes.add(value[:size])
                self._suffixes.add(value[-size:])

    def replace(self, text: str, substitute: Callable[[str], str]) -> str:
        """Return the text with parts of secrets at its beginning and end replaced."""
        end = self._ends.get(text) or _longest(self._prefixes, text, lambda size: text[-size:])
        begin = self._begins.get(text) or _longest(self._suffixes, text, lambda size: text[:size])
        if len(begin) + len(end) > len(text):
            begin = ""
        middle = text[len(begin) : len(text) - len(end)]
        return f"{begin and substitute(begin)}{middle}{end and substitute(end)}"


def _neighbours(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Yield the texts that a reader may put together."""
    before: dict[str, str] = {}
    last = ""
    for message in messages:
        for earlier in {last, before.get(message.role, "")} - {""}:
            if message.content:
                yield earlier, message.content
        last = before[message.role] = message.content or last


def _spanning(first: str, second: str, scan: Scan) -> tuple[str, str] | None:
    """Return the end of the first and the beginning of the second text that together are one secret; None if there is
    none.

    Only what is a secret by its own form counts: the first word of a message is no password because the message before
    it ends with that word. A secret that is complete in the first text may be followed by a short word.
    """
    before, after = first[-REACH:], second[:REACH]
    complete = any(before.endswith(value) for _, value in scan(before)[1])
    joined = before + after
    for _, value in scan(joined)[1]:
        begin = joined.find(value)
        end = begin + len(value) - len(before)
        if not 0 <= begin < len(before) or end <= 0 or not scan(value)[1]:
            continue
        if not complete or end >= MIN_PART:
            return before[begin:], after[:end]
    return None


def _longest(parts: set[str], text: str, cut: Callable[[int], str]) -> str:
    """Return the longest cut of the text that is one of the parts; "" for none."""
    if parts:
        for size in range(min(REACH, len(text)), MIN_PART - 1, -1):
            if (part := cut(size)) in parts:
                return part
    return ""
