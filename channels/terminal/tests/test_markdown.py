"""Markdown that arrives piece by piece."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from trunkline_terminal.markdown import MarkdownStream, render

CODES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLORTERM", raising=False)


def bare(text: str) -> str:
    """The text without colours."""
    return CODES.sub("", text)


def lines_of(text: str) -> list[str]:
    """The lines that are not blank."""
    return [line.rstrip() for line in bare(text).split("\n") if line.strip()]


def streamed(source: str, *, size: int = 3, width: int = 60, window: int = 10) -> str:
    """Return the text printed as final when a text arrives in pieces."""
    stream = MarkdownStream(lambda: width, lambda: window, "ansi_dark")
    printed = "".join(stream.feed(source[at : at + size]) for at in range(0, len(source), size))
    return printed + stream.finish()


SAMPLE = """# Title

A **bold** word and `code`.

- one
- two
  - deep

1. first
2. second

```python
def f():
    return 1
```

| a | b |
|---|---|
| 1 | 2 |

> said
"""


def test_streamed_pieces_render_like_the_whole_text() -> None:
    """For any division of the text, the printed lines are those of the whole text."""
    whole = lines_of("\n".join(render(SAMPLE, 60)))
    for size in (1, 2, 7, 50, 10_000):
        assert lines_of(streamed(SAMPLE, size=size)) == whole


def test_a_finished_block_is_printed_before_the_end() -> None:
    """A paragraph goes out when the next block begins; the growing one stays in the tail."""
    stream = MarkdownStream(lambda: 60, lambda: 10, "ansi_dark")
    assert stream.feed("First.\n\n") == ""
    assert bare(stream.feed("Second\n")) == "First.\n"
    assert [bare(line) for line in stream.tail(5)] == ["Second"]


def test_a_long_code_block_is_printed_in_parts() -> None:
    """A code block longer than the window is printed as it comes, each line once and without gaps."""
    stream = MarkdownStream(lambda: 60, lambda: 8, "ansi_dark")
    lines = [f"value_{number} = {number}" for number in range(40)]
    printed = stream.feed("```python\n")
    for line in lines:
        printed += stream.feed(line + "\n")
    assert len(bare(printed).splitlines()) > 20
    assert len(stream.tail(100)) <= 8
    assert bare(printed + stream.feed("```\n") + stream.finish()).splitlines() == lines


def test_a_long_list_keeps_its_numbers() -> None:
    """A list longer than the window is printed in parts and counted on."""
    source = "".join(f"{number}. item\n" for number in range(1, 31))
    numbers = re.findall(r"(\d+) item", bare(streamed(source, window=6)))
    assert [int(number) for number in numbers] == list(range(1, 31))


def test_rendering_hides_no_source_text() -> None:
    """HTML is shown as text, and links and images show where they lead."""
    shown = bare(
        "\n".join(render("List<int> <b>x</b> [here](http://evil.example) ![i](http://img.example/a)", 200))
    )
    for part in ("List<int>", "<b>x</b>", "http://evil.example", "http://img.example/a"):
        assert part in shown


def test_no_hyperlink_codes_are_written() -> None:
    """Links are text: no OSC 8, which could show one address and open another."""
    assert "\x1b]" not in "\n".join(render("[a](http://b.example) https://c.example", 80))


def test_no_color_leaves_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR there may be bold, but no colour code."""
    monkeypatch.setenv("NO_COLOR", "1")
    codes = set(re.findall(r"\x1b\[([0-9;]*)m", "\n".join(render(SAMPLE, 60))))
    assert codes <= {"0", "1", "3", "4", "2", "1;4"}


def test_an_unknown_theme_or_odd_nesting_still_prints() -> None:
    """Any output of a model is shown as text."""
    assert "x" in bare("\n".join(render("[![x](http://a)](http://b)", 60)))
    assert "y = 1" in bare("\n".join(render("```no-such-language\ny = 1\n```", 60)))


@pytest.mark.parametrize("width", [8, 10, 24])
def test_narrow_terminals_get_lines_that_fit(width: int) -> None:
    """No line is wider than the terminal."""
    assert max(len(bare(line)) for line in render(SAMPLE, width)) <= width


def test_drop_reports_whether_something_was_printed() -> None:
    """A false start that was never printed can be forgotten without a word."""
    stream = MarkdownStream(lambda: 60, lambda: 10, "ansi_dark")
    stream.feed("False start")
    assert stream.drop() is False
    stream.feed("One.\n\nTwo.\n")
    assert stream.drop() is True
    assert stream.finish() == ""


@examples(150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "word ",
                "\n",
                "\n\n",
                "- ",
                "```\n",
                "```a word\n",
                "# ",
                "1. ",
                "> ",
                "    ",
                "**",
                "|",
                "é",
                "<",
            ]
        )
    )
)
def test_no_word_is_lost_or_repeated(parts: list[str]) -> None:
    """Every word is printed exactly once, in any Markdown."""
    source = "".join(parts)
    assert bare(streamed(source, size=1, window=5)).count("word") == source.count("word")
