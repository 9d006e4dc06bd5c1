"""A document as Markdown, the form in which memory stores it: front matter, headings, and marks where pages begin.

The marks are comments, so viewers do not show them; the index cites pages by them.
"""

import re

import msgspec

from trunkline.contracts.documents.reader import Document, Section

DEEPEST_HEADING = 6
FRONT = "---\n"
_LINE = re.compile(r"^(\w+): (.*)$")
_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class DocumentOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a document in memory: the name and hash of the source file, and the reader that converted it."""

    source: str
    sha256: str
    reader: str


class DocumentFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The title of a document, and the number of its pages. "" and None if it has none."""

    title: str = ""
    pages: int | None = None


def to_markdown(document: Document, origin: DocumentOrigin) -> str:
    """Return the text of the file in memory."""
    facts = [("source", origin.source), ("sha256", origin.sha256), ("reader", origin.reader)]
    if document.title:
        facts.append(("title", document.title))
    if document.pages is not None:
        facts.append(("pages", str(document.pages)))
    front = "".join(f"{name}: {_line(value)}\n" for name, value in facts)
    return f"{FRONT}{front}{FRONT}\n{body(document)}"


def body(document: Document) -> str:
    """Return the text of a document without front matter."""
    parts: list[str] = []
    page, above = None, tuple[str, ...]()
    for section in document.sections:
        if section.page is not None and section.page != page:
            page = section.page
            parts.append(f"<!-- page {page} -->")
        parts += _headings(above, section.heading)
        above = section.heading
        parts.append(section.text)
    return "\n\n".join(parts) + "\n"


def normalized(document: Document) -> Document:
    """Return the document without characters that cannot be stored or shown, and without empty sections."""
    sections = (
        Section(text=_clean(one.text).strip("\n"), heading=tuple(map(_line, one.heading)), page=one.page)
        for one in document.sections
    )
    return Document(
        sections=tuple(one for one in sections if one.text.strip()),
        title=_line(document.title),
        pages=document.pages,
    )


def parse_origin(text: str) -> DocumentOrigin | None:
    """Return the origin of a document from the front matter of its text; None when it has none."""
    try:
        return msgspec.convert(_front_matter(text), DocumentOrigin)
    except msgspec.ValidationError:
        return None


def parse_facts(text: str) -> DocumentFacts:
    """Return the facts of a converted document from the front matter of its text; those of any other text are empty."""
    if parse_origin(text) is None:
        return DocumentFacts()
    try:
        return msgspec.convert(_front_matter(text), DocumentFacts, strict=False)
    except msgspec.ValidationError:
        return DocumentFacts()


def _front_matter(text: str) -> dict[str, str]:
    """Return the lines of the front matter by their names. Without front matter there are none."""
    if not text.startswith(FRONT):
        return {}
    front = text[len(FRONT) :].partition(f"\n{FRONT}")[0]
    return {found[1]: found[2] for line in front.split("\n") if (found := _LINE.match(line))}


def _headings(above: tuple[str, ...], now: tuple[str, ...]) -> list[str]:
    """Return the headings of a section that the text does not have yet."""
    same = 0
    while same < min(len(above), len(now)) and above[same] == now[same]:
        same += 1
    return [
        f"{'#' * min(level, DEEPEST_HEADING)} {_line(title)}"
        for level, title in enumerate(now[same:], start=same + 1)
        if _line(title)
    ]


def _line(text: str) -> str:
    return " ".join(_clean(text).split())


def _clean(text: str) -> str:
    """Return the text without lone surrogates, and without control characters except tabs and line ends."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSEEN.sub("", plain.encode("utf-8", "replace").decode("utf-8"))
