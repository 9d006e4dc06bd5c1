"""Text from outside: makes it safe for a terminal, wraps it, and splits it into words. Pure functions."""

import json
import re
import unicodedata
from typing import Any

_ESCAPES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"}
_C1 = dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_DIRECTION = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)
_TABLE: dict[int, int | None] = {
    **_ESCAPES,
    **_C1,
    **_DIRECTION,
    0x7F: 0x2421,
    0x0D: None,
    0x2028: 0x0A,
    0x2029: 0x0A,
}
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def printable(text: str) -> str:
    """Return the text without terminal control sequences.

    Control characters become their pictures (ESC becomes ␛); 8-bit controls, surrogates and direction
    overrides become �; carriage returns are removed. Tab and newline stay. Each character is judged alone, so
    a text may be passed in pieces. This protects against model and tool output that moves the cursor, changes
    the window title, writes to the clipboard or shows text in another order than it runs.
    """
    return _SURROGATE.sub("\ufffd", text).translate(_TABLE)


_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<![^\\x00-\\x7f])[\u200c\u200d\ufe0f]|[\u200c\u200d\ufe0f]{3,}"
)
"""Characters without a shape (Unicode's Default_Ignorable_Code_Point, direction marks, and annotations). Joiners and
emoji variation selectors are part of words in other scripts, so they are permitted after non-ASCII characters."""


def reveal_invisible(text: str) -> str:
    """Return the text with invisible characters replaced by their names, as ``⟨U+200B⟩``. Whole sentences can be
    written in characters that only a machine reads, and a person who approves a text must see all of it.
    """
    return _UNSEEN.sub(lambda found: "".join(f"⟨U+{ord(sign):04X}⟩" for sign in found[0]), text)


def one_line(text: str) -> str:
    """Return the text on one line with all characters visible, for a table cell, a name or a heading. A line break in
    text from outside must not start a new line of our output.
    """
    return reveal_invisible(printable(text)).replace("\n", " ").replace("\t", " ")


QUOTED = "│ "
"""The prefix of each quoted line, and of its continuation lines."""

NARROW = 20
"""The smallest width for which text is wrapped."""

_COLUMN = re.compile(r"\S(?:.*?\S)??\s{2,}(?=\S)")


def wrap_text(text: str, width: int, hang: int | None = None) -> str:
    """Return the text with lines of at most ``width`` columns, broken between words. Continuation lines are indented
    by ``hang`` columns if given; in a row of a table, to its second column; otherwise by two columns more than the
    line. A word that is too long is not broken, so that it can be copied. In quoted text it is broken, because its
    rest could look like our own output.
    """
    if width < NARROW:
        return text
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width, hang))


def display_width(text: str) -> int:
    """Return the number of terminal columns of a text."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def _parts(line: str, width: int, hang: int | None) -> list[str]:
    if display_width(line) <= width:
        return [line]
    first = QUOTED if line.startswith(QUOTED) else ""
    before = first or " " * (_hang(line, width) if hang is None else hang)
    parts, words = [first], re.findall(r"\s*\S+|\s+$", line[len(first) :])
    for word in _pieces(words, width - len(first)) if first else words:
        if parts[-1] not in (first, before) and display_width(parts[-1]) + display_width(word) > width:
            parts.append(before + word.lstrip())
        else:
            parts[-1] += word
    return parts


def _hang(line: str, width: int) -> int:
    row = _COLUMN.match(line)
    if row and display_width(row[0]) <= width // 2:
        return display_width(row[0])
    return len(line) - len(line.lstrip()) + 2


def _pieces(words: list[str], width: int) -> list[str]:
    """Return the words. Words that are too long are split into pieces of half the width, which fit even if every
    character takes two columns.
    """
    most = max(1, width // 2)
    return [
        word[at : at + most] if display_width(word) > width else word
        for word in words
        for at in (range(0, len(word), most) if display_width(word) > width else (0,))
    ]


def truncate_words(text: str, most: int) -> str:
    """Return as much of a text as fits, without a partial word, because half a key is not recognized as a key."""
    if len(text) <= most:
        return text
    end = most if text[most].isspace() else max(text.rfind(space, 0, most) for space in " \t\r\n")
    return text[: max(0, end)].rstrip()


_PIECE = re.compile(
    r"""(?P<gap>[ \t]+)
    |(?P<bare>(?:[A-Za-z0-9_./:=@%+,^-]|(?<=[A-Za-z0-9_])~)+)
    |'(?P<raw>[^'\r\n\0]*)'
    |"(?P<soft>[^"$`\\!\r\n\0]*)\"""",
    re.VERBOSE,
)


def split_plain_command(line: str) -> list[str] | None:
    """Split a line into words, if every POSIX shell splits it in the same way: plain and quoted words separated by
    blanks. Return None for any other line, such as one with ``;``, ``$``, ``*``, ``~``, ``\\`` or a line break.
    """
    words: list[list[str]] = []
    at, apart = 0, True
    while at < len(line):
        piece = _PIECE.match(line, at)
        if piece is None:
            return None
        if piece["gap"] is None:
            if apart:
                words.append([])
            words[-1].append(piece["bare"] or piece["raw"] or piece["soft"] or "")
        at, apart = piece.end(), piece["gap"] is not None
    return ["".join(parts) for parts in words]


def argv_from_json(text: str) -> list[str] | None:
    """Return the argument vector that a model sent as JSON in text; None when the text is anything else."""
    if not text.lstrip().startswith("["):
        return None
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and all(isinstance(word, str) for word in found) else None


def argv_of(value: object) -> list[str] | None:
    """Return the argument vector of a program: from a list of words, from the same list as JSON text, or from a line
    of plain words. Return None for a script, which needs a shell, and for any other value.
    """
    if isinstance(value, str):
        found = argv_from_json(value)
        return split_plain_command(value) if found is None else found
    return value if isinstance(value, list) and all(isinstance(word, str) for word in value) else None
