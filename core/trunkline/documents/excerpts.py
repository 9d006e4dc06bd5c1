"""Excerpts: the text around a line of a document, within its page or below its heading."""

import re

MAX_CHARACTERS = 1_500
_PAGE = re.compile(r"^<!-- page (\d+) -->$", re.MULTILINE)
_JOINT = re.compile(r"<!-- page \d+ -->|#{1,6} .*")


def text_around(text: str, line: int, max_characters: int = MAX_CHARACTERS) -> str:
    """Return the lines around ``line``, which counts from 1: as many before and after it as fit into ``max_characters``
    characters.

    The excerpt does not cross the start of another page. It begins at the heading above, which it includes, and ends
    before the next heading.
    """
    lines = text.split("\n")
    here = min(max(line - 1, 0), len(lines) - 1)
    first = last = here
    left = max_characters - len(lines[here])
    up, down = not _joint(lines[here]), True
    while (up or down) and left > 0:
        if (
            up := up
            and first > 0
            and not lines[first - 1].startswith("<!-- page")
            and len(lines[first - 1]) <= left
        ):
            first -= 1
            left -= len(lines[first]) + 1
            up = not _joint(lines[first])
        if (
            down := down
            and last + 1 < len(lines)
            and not _joint(lines[last + 1])
            and len(lines[last + 1]) <= left
        ):
            last += 1
            left -= len(lines[last]) + 1
    return "\n".join(lines[first : last + 1]).strip("\n")[:max_characters]


def page_of(text: str, line: int) -> int | None:
    """Return the page of a line; None if the text has no pages."""
    above = "\n".join(text.split("\n")[:line])
    marks = _PAGE.findall(above)
    if marks:
        return int(marks[-1])
    return above.count("\f") + 1 if "\f" in text else None


def _joint(line: str) -> bool:
    return _JOINT.fullmatch(line) is not None
