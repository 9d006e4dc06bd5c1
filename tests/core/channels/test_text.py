"""Text of others on a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline._util.text import printable


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("\x1b[2J\x1b]52;c;aGk=\x07", "␛[2J␛]52;c;aGk=␇"),
        ("\x9b31m", "�31m"),
        ("win\r\ndows", "win\ndows"),
        ("over\rwritten", "overwritten"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("\u202egnp.exe", "�gnp.exe"),
        ("a\u2028b", "a\nb"),
        ("\ud800", "�"),
        ("\x7f\x00\x08", "␡␀␈"),
        ("žluťoučký 🐎 한국어 \u200d", "žluťoučký 🐎 한국어 \u200d"),
    ],
)
def test_terminal_control_characters_become_visible(given_text: str, shown: str) -> None:
    """Control characters become pictures, direction overrides a mark, other text stays as it is."""
    assert printable(given_text) == shown


@given(st.text(st.characters(codec=None)), st.integers(0, 50))
def test_control_sequences_are_caught_in_any_chunking(text: str, at: int) -> None:
    """No control character but tab and newline is left, and chunks give the result of the whole text."""
    shown = printable(text)
    assert not [char for char in shown if unicodedata.category(char) in ("Cc", "Cs") and char not in "\t\n"]
    assert printable(text[:at]) + printable(text[at:]) == shown
    assert printable(shown) == shown
