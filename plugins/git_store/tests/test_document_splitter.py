"""The splitting of documents: at headings and other joints, within bounds, and without loss."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.contracts.conversations.messages import Message
from trunkline_git_store.conversations import ConversationFile, Header
from trunkline_git_store.index import file_kinds
from trunkline_git_store.index.conversation import message_passages
from trunkline_git_store.index.document_splitter import LINES, MAX_CHARACTERS, OVERLAP, split_document
from trunkline_git_store.index.file_kinds import document_passages, file_passages

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=120)


def test_headings_and_pages_are_joints() -> None:
    """Each piece knows its line, its page and the headings above it."""
    body = "word " * 100
    text = f"# A\n\n{body}\n\n## B\n\n{body}\n\n<!-- page 2 -->\n\nmore of B\n\n# C\n\n{body}\n"
    found = [(one.line, one.page, one.headings) for one in split_document("a.md", text)]
    assert found == [(1, 0, ("A",)), (5, 0, ("A", "B")), (10, 2, ("A", "B"))]


def test_a_form_feed_is_a_page_too() -> None:
    """Text that other programs made of paged formats has them."""
    assert [(one.line, one.page) for one in split_document("a.txt", "one\n\ftwo\nstill two\n\fthree")] == [
        (1, 1), (2, 2), (4, 3),
    ]  # fmt: skip


def test_code_is_split_at_definitions() -> None:
    """A function with the comment above it is a piece, under its own first line."""
    functions = [
        f"# Says {name}.\ndef {name}():\n" + f"    print('{name}')\n" * 30 for name in ("one", "two")
    ]
    found = list(split_document("a.py", "\n\n".join(functions)))
    assert [one.headings for one in found] == [("def one():",), ("def two():",)]
    assert found[1].text.startswith("# Says two.\ndef two():")


def test_rows_stay_under_the_names_of_their_columns() -> None:
    """A row is found with the meaning of its cells."""
    text = "plant,kilos\n" + "\n".join(f"bean {number},{number}" for number in range(200))
    found = list(split_document("a.csv", text))
    assert len(found) > 2
    assert {one.headings for one in found[1:]} == {("plant,kilos",)}


def test_text_without_joints_overlaps_by_a_tenth() -> None:
    """An endless line is cut at ends of sentences, and text on both sides of a cut is found as a whole."""
    text = " ".join(f"Sentence number {number} ends." for number in range(1_000))
    found = [one.text for one in split_document("a.txt", text)]
    assert all(one.rstrip().endswith(".") for one in found)
    for one, after in pairwise(found):
        assert after[:OVERLAP] in one + text[text.index(one) + len(one) :][: OVERLAP + 2]
        assert after[: OVERLAP - 40] in one


def test_a_heading_in_code_is_none() -> None:
    """A comment in a fenced block begins nothing."""
    text = "# A\n" + "text " * 200 + "\n```\n# comment\n```\nend"
    assert len(list(split_document("a.md", text))) == 1


@pytest.mark.parametrize("name", ["a.md", "a.py", "a.csv", "a.txt"])
@given(
    lines=st.lists(
        st.one_of(WORDS, st.sampled_from(["# H", "```", "def f():", "<!-- page 3 -->", ""])), max_size=200
    )
)
def test_splitting_loses_no_text_and_keeps_the_size_limit(name: str, lines: list[str]) -> None:
    """Every line with content is in a piece that begins on or before it, for any text."""
    text = "\n".join(lines)
    found = list(split_document(name, text))
    assert all(len(one.text) <= MAX_CHARACTERS + LINES and one.text.count("\n") < LINES for one in found)
    for number, line in enumerate(text.split("\n"), start=1):
        said = line.strip("\f")
        if said.strip() and not re.fullmatch(r"<!-- page \d+ -->", line):
            assert any(one.line <= number and said in one.text for one in found)


def test_a_document_is_found_by_its_page() -> None:
    """The passages that are indexed have the pages that the marks say."""
    data = b"---\nsource: a.pdf\n---\n\n<!-- page 1 -->\n\none\n\n<!-- page 7 -->\n\nseven\n"
    found = document_passages("documents/a.pdf.md", data)
    assert [(one.page, one.line) for one in found] == [(0, 1), (1, 6), (7, 10)]


@pytest.mark.parametrize("line", ['"a": x{}y', '"a": "x{}y"', '{}"a"{}:{}"b",{}c', '"a{}'])
def test_any_json_line_is_indexed_in_linear_time(line: str) -> None:
    """A line is scanned in one pass, with any amount of white space."""
    begun = time.process_time()
    assert file_passages("a.json", line.replace("{}", " " * 100_000).encode())
    assert time.process_time() - begun < 5.0


@pytest.mark.parametrize("blank", [" " * 300_000, "( " * 100_000, "\n" * 300_000])
def test_any_message_is_indexed_in_linear_time(blank: str) -> None:
    """Any message is indexed in one pass, with any amount of white space or brackets."""
    said = [Message(id=f"m{n}", role="user", content=f"a{blank}b?") for n in range(2)]
    header = Header(id="c", block="main", title=None, created_at=said[0].created_at)
    begun = time.process_time()
    found = message_passages(ConversationFile(header, said, [2, 3], b""), 0, 3)
    assert [one.asks for one in found] == [True, True]
    assert time.process_time() - begun < 5.0


def test_a_file_that_breaks_its_parser_is_read_as_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The words of a file with any parser error are found, the error is reported, and every other file is indexed."""

    def breaks(path: str, data: bytes) -> None:
        raise RuntimeError("no parser is without faults")

    monkeypatch.setattr(file_kinds, "document_passages", breaks)
    assert any("quetzal" in one.text for one in file_passages("documents/a.md", b"quetzal\n"))
    assert "documents/a.md" in caplog.text
