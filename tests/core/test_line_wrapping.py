"""Texts on lines that fit a terminal."""

import pytest

from trunkline._util.text import display_width, wrap_text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("short", ["short"]),
        ("one two three four five six seven", ["one two three four five", "  six seven"]),
        ("  one two three four five six", ["  one two three four", "    five six"]),
        ("/show   the last tool result in full", ["/show   the last tool", "        result in full"]),
        ("see /a/very/long/path/that/is/whole.md", ["see", "  /a/very/long/path/that/is/whole.md"]),
        ("│ +one two three four five six", ["│ +one two three four", "│ five six"]),
        ("日本語で話せます 日本語で話", ["日本語で話せます", "  日本語で話"]),
        ("one two three four five\nsix", ["one two three four five", "six"]),
    ],
)
def test_lines_break_between_words(text: str, lines: list[str]) -> None:
    """A continued line is indented to its start, or to its second column; words stay whole."""
    assert wrap_text(text, 24).split("\n") == lines


def test_a_wrapped_quoted_line_keeps_its_mark() -> None:
    """A terminal would wrap the line to the first column, where the author of a long word could imitate the
    question."""
    parts = wrap_text("│ +" + "x" * 100 + "Allow? y: this call" + "語" * 50, 40).split("\n")
    assert all(part.startswith("│ ") and display_width(part) <= 40 for part in parts)
    assert "".join(part.removeprefix("│ ") for part in parts).count("x") == 100


def test_a_narrow_terminal_gets_the_text_unwrapped() -> None:
    """There is nothing to gain."""
    assert wrap_text("one two three four five six", 10) == "one two three four five six"
