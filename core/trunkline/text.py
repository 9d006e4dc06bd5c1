"""Text that others wrote, made fit to be shown on a terminal. One pure function and its table."""

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
