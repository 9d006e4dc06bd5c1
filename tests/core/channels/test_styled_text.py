"""Markdown as text with styles, and its pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.api.channel import StyledSpan, StyledText, cut_text, parse_markdown, utf16_units


def styles(styled: StyledText) -> list[tuple[str, str]]:
    return [(span.style, styled.text[span.start : span.end]) for span in styled.spans]


def test_markdown_becomes_text_with_styles() -> None:
    """Marks become styles, lists keep their marks, and HTML is shown as it is written."""
    styled = parse_markdown(
        "# Title\n\nSome **bold _both_** `code` and [a link](https://example.org).\n\n- one\n  - two\n\n3. three\n\n"
        "> quoted\n\n```python\nx = 1\n```\n\n~~gone~~ <b>html</b>\n\n---\n"
    )
    assert styled.text == (
        "Title\n\nSome bold both code and a link.\n\n• one\n  • two\n\n3. three\n\nquoted\n\nx = 1\n\n"
        "gone <b>html</b>\n\n———"
    )
    assert styles(styled) == [
        ("bold", "Title"), ("bold", "bold both"), ("italic", "both"), ("code", "code"), ("link", "a link"),
        ("quote", "quoted"), ("pre", "x = 1"), ("strike", "gone"),
    ]  # fmt: skip
    assert [span.target for span in styled.spans if span.target] == ["https://example.org", "python"]


def test_a_table_is_shown_as_it_is_written() -> None:
    """A table keeps its columns in text of one width."""
    styled = parse_markdown("before\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nafter")
    assert styles(styled) == [("pre", "| a | b |\n|---|---|\n| 1 | 2 |")]
    assert styled.text.startswith("before\n\n") and styled.text.endswith("\n\nafter")


@pytest.mark.parametrize(
    ("text", "limit", "pieces"),
    [
        ("one two\n\nthree four", 12, ["one two", "three four"]),
        ("one two\nthree four", 12, ["one two", "three four"]),
        ("one two three", 8, ["one two", "three"]),
        ("😀😀😀", 4, ["😀😀", "😀"]),
        ("ab👩\u200d👩\u200d👧", 9, ["ab", "👩\u200d👩\u200d👧"]),
        ("aaae\u0301", 4, ["aaa", "e\u0301"]),
    ],
)
def test_a_text_is_cut_at_paragraphs_lines_and_words(text: str, limit: int, pieces: list[str]) -> None:
    """The limit counts UTF-16 units; accents and joined emoji stay whole."""
    assert [piece.text for piece in cut_text(StyledText(text), limit)] == pieces


@pytest.mark.parametrize(
    "markdown", ["see this `some long code` here", "see [some long code](https://a.b) here"]
)
def test_code_and_links_are_not_cut(markdown: str) -> None:
    """A piece ends before code or a link that does not fit into it."""
    pieces = cut_text(parse_markdown(markdown), 16)
    assert [text for piece in pieces for _, text in styles(piece)] == ["some long code"]


def test_a_code_block_that_is_too_long_goes_on_as_a_code_block() -> None:
    """Each piece of a long code block is a code block of whole lines, in the same language."""
    pieces = cut_text(parse_markdown("```python\n" + "line = 1\n" * 10 + "```"), 30)
    assert len(pieces) == 4
    for piece in pieces:
        assert piece.spans == (StyledSpan("pre", 0, len(piece.text), "python"),)
        assert set(piece.text.split("\n")) == {"line = 1"}


@given(st.text(alphabet="ab \n`*[]()😀e\u0301\u200d", max_size=120), st.integers(min_value=4, max_value=40))
def test_pieces_lose_only_white_space_and_keep_their_limit(text: str, limit: int) -> None:
    """Every piece is within the limit, nothing but white space is lost, and each style lies in its piece."""
    styled = parse_markdown(text)
    pieces = cut_text(styled, limit)
    assert all(utf16_units(piece.text) <= limit for piece in pieces)
    assert "".join("".join(piece.text for piece in pieces).split()) == "".join(styled.text.split())
    for piece in pieces:
        assert all(0 <= span.start < span.end for span in piece.spans)
