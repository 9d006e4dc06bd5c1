"""A pattern of RE2 as one of ripgrep's, where the same lines match both. Where they may not there is none.

The two differ in what ``\\w`` and the like are beyond ASCII, and in brackets within brackets.
"""

from collections.abc import Iterator

_WORD, _DIGIT, _SPACE = "0-9A-Za-z_", "0-9", r"\t\n\x0C\r "
_CLASSES = {"w": _WORD, "d": _DIGIT, "s": _SPACE}
_OUTSIDE = {
    **{letter: f"[{named}]" for letter, named in _CLASSES.items()},
    **{letter.upper(): f"[^{named}]" for letter, named in _CLASSES.items()},
    "b": r"(?-u:\b)",
    "B": r"(?-u:\B)",
}
_OTHER_INSIDE = ("[", "&&", "--", "~~")


def to_ripgrep(pattern: str) -> str | None:
    """The pattern for ripgrep; None when it may mean something else there."""
    try:
        return "".join(_translate(pattern))
    except _NotTranslatable:
        return None


class _NotTranslatable(Exception):
    """It may mean something else."""


def _translate(pattern: str) -> Iterator[str]:
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            letter = pattern[at + 1 : at + 2]
            yield _OUTSIDE.get(letter, f"\\{letter}")
            at += 2
        elif pattern[at] == "[":
            end = _end_of_class(pattern, at)
            yield "".join(_translate_class(pattern[at:end]))
            at = end
        else:
            yield pattern[at]
            at += 1


def _end_of_class(pattern: str, at: int) -> int:
    """Behind the bracket that closes a class; one that stands first is a letter of it."""
    at += 2 if pattern[at + 1 : at + 2] == "^" else 1
    first = True
    while at < len(pattern):
        if pattern.startswith("[:", at) and ":]" in pattern[at:]:
            at = pattern.index(":]", at) + 2
        elif pattern[at] == "]" and not first:
            return at + 1
        else:
            at += 2 if pattern[at] == "\\" else 1
        first = False
    raise _NotTranslatable


def _translate_class(text: str) -> Iterator[str]:
    at, last = 1, len(text) - 1
    yield "["
    if text[at] == "^":
        yield "^"
        at += 1
    if text[at] == "]":
        yield "\\]"
        at += 1
    while at < last:
        if text.startswith("[:", at):
            end = text.index(":]", at) + 2
            yield text[at:end]
            at = end
        elif text.startswith(_OTHER_INSIDE, at):
            raise _NotTranslatable
        elif text[at] == "\\":
            letter = text[at + 1]
            if letter in "WDSbB":
                raise _NotTranslatable
            yield _CLASSES.get(letter, f"\\{letter}")
            at += 2
        else:
            yield text[at]
            at += 1
    yield "]"
