"""Web pages (HTML): headings, paragraphs, lists, tables and code; scripts, styles and navigation are left out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from trunkline.api.documents import Document, Reader, Section, UnreadableDocument
from trunkline_documents.tables import table_portions

if TYPE_CHECKING:
    from lxml.html import HtmlElement

SKIPPED_TAGS = frozenset(
    {
        "script",
        "style",
        "noscript",
        "template",
        "svg",
        "canvas",
        "iframe",
        "object",
        "nav",
        "head",
        "button",
        "select",
    }
)
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
BLOCKS = frozenset(
    {
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "body",
            "dd",
            "details",
            "div",
            "dl",
            "dt",
            "figcaption",
        ),
        *(
            "figure",
            "footer",
            "form",
            "header",
            "hr",
            "html",
            "li",
            "main",
            "ol",
            "p",
            "section",
            "summary",
            "ul",
        ),
    }
)


class HtmlReader(Reader):
    """A section for what stands under each heading, and for each table."""

    name = "html"
    suffixes = (".html", ".htm", ".xhtml")

    def read(self, file: BinaryIO, name: str) -> Document:
        """See ``Reader.read``."""
        title, sections = read_html(file.read())
        return Document(sections=sections, title=title)


def read_html(data: bytes) -> tuple[str, tuple[Section, ...]]:
    """The title and the sections of a page. Raises UnreadableDocument."""
    from lxml import etree, html  # pyright: ignore[reportAttributeAccessIssue] - lxml has no stubs

    parser = html.HTMLParser(no_network=True, huge_tree=True, encoding=_encoding(data))
    try:
        root = html.document_fromstring(data, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError) as error:
        raise UnreadableDocument("it is broken: it is not a web page") from error
    title = " ".join((root.findtext(".//title") or "").split())
    page = _TextExtractor()
    page.take(root)
    page.end_section()
    return title, tuple(page.sections)


def _encoding(data: bytes) -> str | None:
    """UTF-8 when it is that; else the parser looks for what the page says."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return "utf-8"


class _TextExtractor:
    """Gathers the text of a tree, depth first: words into lines, lines into sections."""

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self._heading: tuple[str, ...] = ()
        self._lines: list[str] = []
        self._words: list[str] = []

    def take(self, root: "HtmlElement") -> None:
        """Take an element in with all below it; not by recursion, because a page may be nested without end."""
        waiting: list[tuple[HtmlElement, bool]] = [(root, True)]
        while waiting:
            element, begins = waiting.pop()
            if not begins:
                self._leave(element)
                continue
            if self._enter(element):
                waiting.append((element, False))
                waiting += [(child, True) for child in reversed(element)]
            else:
                self._words.append(element.tail or "")

    def _enter(self, element: "HtmlElement") -> bool:
        """Begin an element; whether what is below it is to be taken too."""
        tag = element.tag
        if not isinstance(tag, str) or tag in SKIPPED_TAGS:
            return False
        if tag in HEADINGS:
            self._begin(int(tag[1]), " ".join(element.text_content().split()))
            return False
        if tag == "table" and not element.findall(".//table"):
            self._table(element)
            return False
        if tag == "pre":
            self.end_line()
            self._lines.append(f"```\n{element.text_content().strip(chr(10))}\n```")
            return False
        if tag == "br" or tag in BLOCKS:
            self.end_line()
        if tag == "li":
            self._words.append("- ")
        self._words.append(element.text or "")
        return True

    def _leave(self, element: "HtmlElement") -> None:
        if element.tag in BLOCKS:
            self.end_line()
        self._words.append(element.tail or "")

    def _begin(self, level: int, title: str) -> None:
        self.end_section()
        if title:
            self._heading = (*self._heading[: level - 1], title)

    def _table(self, element: "HtmlElement") -> None:
        self.end_section()
        rows = (
            [" ".join(cell.text_content().split()) for cell in row.iter("td", "th")]
            for row in element.iter("tr")
        )
        for _, _, text in table_portions(row for row in rows if row):
            self.sections.append(Section(text=text, heading=self._heading))

    def end_line(self) -> None:
        """Join the words gathered so far into a line."""
        line = " ".join("".join(self._words).split())
        self._words.clear()
        if line and line != "-":
            self._lines.append(line)

    def end_section(self) -> None:
        """Join the lines gathered so far into a section."""
        self.end_line()
        if self._lines:
            self.sections.append(Section(text="\n\n".join(_lists(self._lines)), heading=self._heading))
            self._lines.clear()


def _lists(lines: list[str]) -> Iterator[str]:
    """The lines, with the items of a list under each other."""
    held: list[str] = []
    for line in lines:
        if held and not line.startswith("- "):
            yield "\n".join(held)
            held = []
        if line.startswith("- "):
            held.append(line)
        else:
            yield line
    if held:
        yield "\n".join(held)
