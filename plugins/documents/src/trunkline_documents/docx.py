"""Word documents (DOCX): headings, paragraphs, lists and tables, in their order."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from trunkline.api.documents import Document, Reader, Section, UnreadableDocument
from trunkline_documents.tables import table_portions

if TYPE_CHECKING:
    from docx.document import Document as Word
    from docx.table import Table
    from docx.text.paragraph import Paragraph

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)


class DocxReader(Reader):
    """A section for what stands under each heading, and for each table."""

    name = "docx"
    suffixes = (".docx", ".docm")

    def read(self, file: BinaryIO, name: str) -> Document:
        """See ``Reader.read``."""
        import docx
        from docx.opc.exceptions import PackageNotFoundError

        from trunkline_documents.zip_xml import open_archive

        open_archive(file)
        try:
            word = docx.Document(file)
        except (PackageNotFoundError, KeyError, ValueError) as error:
            raise UnreadableDocument("it is broken: it is not a Word document") from error
        return Document(sections=tuple(_sections(word)), title=word.core_properties.title or "")


def _sections(word: "Word") -> Iterator[Section]:
    from docx.table import Table

    heading: tuple[str, ...] = ()
    lines: list[str] = []
    for item in word.iter_inner_content():
        if isinstance(item, Table):
            yield from _flush(lines, heading)
            yield from _rows(item, heading)
            continue
        if level := _level(item):
            yield from _flush(lines, heading)
            heading = (*heading[: level - 1], item.text)
        elif item.text.strip():
            lines.append(_line(item))
    yield from _flush(lines, heading)


def _flush(lines: list[str], heading: tuple[str, ...]) -> Iterator[Section]:
    """Yield the lines gathered so far as a section, and clear them."""
    if lines:
        yield Section(text="\n\n".join(lines), heading=heading)
        lines.clear()


def _rows(item: "Table", heading: tuple[str, ...]) -> Iterator[Section]:
    rows = ([cell.text for cell in row.cells] for row in item.rows)
    for _, _, text in table_portions(rows):
        yield Section(text=text, heading=heading)


def _level(paragraph: "Paragraph") -> int:
    """1 for the outermost heading and for the title; 0 for what is no heading."""
    style = paragraph.style.name if paragraph.style is not None else None
    if not style or not paragraph.text.strip():
        return 0
    found = _HEADING.match(style)
    return int(found[1]) if found else int(style == "Title")


def _line(paragraph: "Paragraph") -> str:
    style = (paragraph.style.name if paragraph.style is not None else None) or ""
    return f"- {paragraph.text}" if style.startswith("List") else paragraph.text
