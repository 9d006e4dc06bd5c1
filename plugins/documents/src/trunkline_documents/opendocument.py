"""OpenDocument, as LibreOffice writes it: texts (ODT), spreadsheets (ODS) and presentations (ODP)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from trunkline.api.documents import Document, Reader, Section
from trunkline_documents.tables import table_portions

if TYPE_CHECKING:
    from lxml.etree import _Element

_BASE = "urn:oasis:names:tc:opendocument:xmlns"
TEXT = f"{{{_BASE}:text:1.0}}"
TABLE = f"{{{_BASE}:table:1.0}}"
DRAW = f"{{{_BASE}:drawing:1.0}}"
OFFICE = f"{{{_BASE}:office:1.0}}"
PRESENTATION = f"{{{_BASE}:presentation:1.0}}"
SPACES = (f"{TEXT}s", f"{TEXT}tab", f"{TEXT}line-break")
MOST_REPEATED = 1_000
"""Sheets say "a million empty cells" in one element; more than this of anything is taken for none."""


class OpenDocumentReader(Reader):
    """Headings and paragraphs, sheets as tables under their names, slides as pages."""

    name = "opendocument"
    suffixes = (".odt", ".ods", ".odp")

    def read(self, file: BinaryIO, name: str) -> Document:
        """See ``Reader.read``."""
        from trunkline_documents.zip_xml import open_archive, read_part

        archive = open_archive(file)
        content = read_part(archive, "content.xml")
        title = (
            read_part(archive, "meta.xml").findtext(".//{*}title") if "meta.xml" in archive.namelist() else ""
        )
        slides = list(content.iter(f"{DRAW}page"))
        if slides:
            sections = tuple(_slide(slide, number) for number, slide in enumerate(slides, start=1))
            return Document(sections=sections, title=title or "", pages=len(slides))
        found: list[Section] = []
        for body in content.iter(f"{OFFICE}text"):
            found += _prose(body)
        for body in content.iter(f"{OFFICE}spreadsheet"):
            found += _sheets(body)
        return Document(sections=tuple(found), title=title or "")


def _prose(body: "_Element") -> Iterator[Section]:
    heading: tuple[str, ...] = ()
    lines: list[str] = []
    for one in body.iter(f"{TEXT}h", f"{TEXT}p", f"{TABLE}table"):
        if one.tag == f"{TEXT}p" and next(one.iterancestors(f"{TABLE}table"), None) is not None:
            continue  # it is read with its table
        if one.tag == f"{TEXT}p":
            item = next(one.iterancestors(f"{TEXT}list-item"), None) is not None
            lines += [f"- {text}" if item else text for text in [_text(one)] if text]
            continue
        if lines:
            yield Section(text="\n\n".join(lines), heading=heading)
            lines = []
        if one.tag == f"{TEXT}h":
            level = int(one.get(f"{TEXT}outline-level", "1"))
            heading = (*heading[: level - 1], _text(one))
        else:
            yield from (Section(text=text, heading=heading) for _, _, text in table_portions(_rows(one)))
    if lines:
        yield Section(text="\n\n".join(lines), heading=heading)


def _sheets(body: "_Element") -> Iterator[Section]:
    for sheet in body.iter(f"{TABLE}table"):
        for first, last, text in table_portions(_rows(sheet)):
            yield Section(text=text, heading=(sheet.get(f"{TABLE}name", ""), f"Rows {first} to {last}"))


def _rows(table: "_Element") -> Iterator[list[str]]:
    for row in table.iter(f"{TABLE}table-row"):
        cells: list[str] = []
        for cell in row.iter(f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
            text = " ".join(filter(None, map(_text, cell.iter(f"{TEXT}p"))))
            cells += [text] * _repeated(cell.get(f"{TABLE}number-columns-repeated", "1"))
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield cells


def _repeated(count: str) -> int:
    times = int(count) if count.isdecimal() else 1
    return times if times <= MOST_REPEATED else 0


def _slide(slide: "_Element", number: int) -> Section:
    title = ""
    texts = []
    for frame in slide.iter(f"{DRAW}frame"):
        text = "\n".join(filter(None, map(_text, frame.iter(f"{TEXT}p", f"{TEXT}h"))))
        kind = frame.get(f"{PRESENTATION}class", "")
        if kind == "title" and not title:
            title = " ".join(text.split())
        elif text:
            texts.append(f"Notes: {text}" if kind == "notes" else text)
    return Section(text="\n\n".join(texts) or title, heading=(title or f"Slide {number}",), page=number)


def _text(element: "_Element") -> str:
    """Return the text of an element, including tabs, spaces and line breaks, which are elements of their own."""
    from lxml.etree import iterwalk

    parts: list[str] = []
    for event, one in iterwalk(element, events=("start", "end")):
        if event == "start":
            parts.append(f" {one.text or ''}" if one.tag in SPACES else one.text or "")
        elif one is not element:
            parts.append(one.tail or "")
    return " ".join("".join(parts).split())
