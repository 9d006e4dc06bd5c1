"""Text that others wrote: made fit to be shown on a terminal, and taken apart into words. Pure."""

import re

_ESCAPES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"}
_C1 = dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_DIRECTION = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)
_TABLE: dict[int, int | None] = {
    **_ESCAPES,
    **_C1,
    **_DIRECTION,
    **_SURROGATES,
    0x7F: 0x2421,
    0x0D: None,
    0x2028: 0x0A,
    0x2029: 0x0A,
}


def printable(text: str) -> str:
    """The text without anything a terminal obeys.

    Control characters become their pictures (ESC reads ␛), 8-bit controls, surrogates and direction overrides become
    �, carriage returns go. Tab and newline stay. Each character is judged alone, so pieces of a text may be passed
    one by one. What it guards against: model and tool output that moves the cursor, retitles the window, writes to
    the clipboard or shows text in another order than it runs.
    """
    return text.translate(_TABLE)


_PIECE = re.compile(
    r"""(?P<gap>[ \t]+)
    |(?P<bare>(?:[A-Za-z0-9_./:=@%+,^-]|(?<=[A-Za-z0-9_])~)+)
    |'(?P<raw>[^'\r\n\0]*)'
    |"(?P<soft>[^"$`\\!\r\n\0]*)\"""",
    re.VERBOSE,
)


def plain_words(line: str) -> list[str] | None:
    """The words that every POSIX shell reads in a line, where that needs no knowledge of shells: plain words and quoted
    ones with blanks between. None for any other, such as one with ``;``, ``$``, ``*``, ``~``, ``\\`` or two lines."""
    words: list[str] = []
    at, apart = 0, True
    while at < len(line):
        piece = _PIECE.match(line, at)
        if piece is None:
            return None
        if piece["gap"] is None:
            text = piece["bare"] or piece["raw"] or piece["soft"] or ""
            words[len(words) - (not apart) :] = [text if apart else words[-1] + text]
        at, apart = piece.end(), piece["gap"] is not None
    return words
