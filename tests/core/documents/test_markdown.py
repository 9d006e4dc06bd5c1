"""Text of a document as memory stores it: readable, with an origin that no document can forge, and complete around a
position."""

from hypothesis import given
from hypothesis import strategies as st

from trunkline.contracts.documents.reader import Document, Section
from trunkline.documents.excerpts import page_of, text_around
from trunkline.documents.markdown import DocumentOrigin, normalized, parse_origin, to_markdown

ORIGIN = DocumentOrigin(source="report.pdf", sha256="0" * 64, reader="pdf")


def test_a_document_is_readable_markdown() -> None:
    """Headings once, where they are new; a mark where a page begins; text as it is."""
    document = Document(
        title="Beans",
        pages=2,
        sections=(
            Section(text="one", heading=("Garden",), page=1),
            Section(text="two", heading=("Garden", "Tools"), page=1),
            Section(text="three", heading=("Garden", "Tools"), page=2),
        ),
    )
    assert to_markdown(document, ORIGIN).split("---\n\n", 1)[1] == (
        "<!-- page 1 -->\n\n# Garden\n\none\n\n## Tools\n\ntwo\n\n<!-- page 2 -->\n\nthree\n"
    )


@given(st.text(), st.text(), st.text())
def test_no_document_forges_its_origin(title: str, heading: str, text: str) -> None:
    """For any title, heading or text, the origin is the source that was really read."""
    document = normalized(Document(title=title, sections=(Section(text=text, heading=(heading,)),)))
    written = to_markdown(document, ORIGIN)
    assert parse_origin(written) == ORIGIN
    assert written.encode().decode() == written
    assert not any(sign in written for sign in "\0\x1b\r")


def test_a_title_cannot_end_the_front_matter() -> None:
    """A title of several lines is one line."""
    document = normalized(Document(title="x\n---\nsha256: forged", sections=(Section(text="text"),)))
    assert parse_origin(to_markdown(document, ORIGIN)) == ORIGIN


@given(
    st.lists(st.sampled_from(["# H", "text " * 30, "", "<!-- page 4 -->", "x" * 3_000]), min_size=1),
    st.data(),
)
def test_around_a_line_is_the_line_within_its_page(lines: list[str], data: st.DataObject) -> None:
    """It holds the line, is bounded, and crosses no page."""
    text = "\n".join(lines)
    line = data.draw(st.integers(1, len(lines)))
    found = text_around(text, line)
    assert len(found) <= 1_500
    assert lines[line - 1].strip("\n")[:1_500] in found
    assert "<!-- page" not in found or lines[line - 1].startswith("<!-- page")


def test_the_page_is_that_of_the_last_mark() -> None:
    """Before the first mark there is none."""
    text = "front\n<!-- page 3 -->\none\n<!-- page 7 -->\ntwo"
    assert [page_of(text, line) for line in range(1, 6)] == [None, 3, 3, 7, 7]
    assert [page_of("one\n\ftwo\nthree\n\ffour", line) for line in range(1, 5)] == [1, 2, 2, 3]
