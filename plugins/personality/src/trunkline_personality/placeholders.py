"""Remove the placeholder texts of a new file, and return what a person wrote. Pure.

Words in parentheses that are a paragraph of their own, fields without a value or with one in parentheses, and headings
below which nothing is left count as empty: nobody has written there yet.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_HINT = re.compile(r"(?:^|(?<=\n\n))[ \t]*\((?:[^\n]|\n(?!\n))*\)[ \t]*(?=\n\n|\Z)")
_UNSET = re.compile(r"^ ?[-*]? ?\**[\w /-]{1,40}\** ?:\** ?(\([^)]*\)|not set|_+)? ?$", re.IGNORECASE)
_HEADING = re.compile(r"^(#{1,6})\s")
_GENERATED_LINE = re.compile(r"^ ?[-*]? ?\**Block\** ?:", re.IGNORECASE)
"""A line that the program fills in: no sign that anybody wrote."""


@lru_cache(maxsize=64)  # the same few files are asked for in turn after turn
def without_placeholders(text: str) -> str:
    """Return the text without placeholders; "" when nothing else is there."""
    plain = _COMMENT.sub("", text.replace("\r\n", "\n")).strip()
    plain = re.sub(r"\n[ \t]*(?=\n)", "\n", plain)
    plain = re.sub(r"(?m)^(#{1,6}\s.*)\n(?=\()", r"\1\n\n", plain)  # a hint may stand right below its heading
    lines = [line for line in _HINT.sub("", plain).split("\n") if not _UNSET.match(_collapse_spaces(line))]
    kept = list(_without_empty_headings(lines))
    if not any(
        line.strip() and not _HEADING.match(line) and not _GENERATED_LINE.match(_collapse_spaces(line))
        for line in kept
    ):
        return ""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n")


def _collapse_spaces(line: str) -> str:
    """A line with one space for each run of white space, so that a pattern looks at it once."""
    return re.sub(r"\s+", " ", line)


def _without_empty_headings(lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        heading = _HEADING.match(line)
        if heading is None or _has_text(lines[number + 1 :], len(heading[1])):
            yield line


def _has_text(after: list[str], level: int) -> bool:
    """Report whether text follows before the next heading that is as high."""
    for line in after:
        heading = _HEADING.match(line)
        if heading is not None and len(heading[1]) <= level:
            return False
        if heading is None and line.strip():
            return True
    return False
