"""Presentations (PPTX): each slide under its title, with its tables and the speaker's notes."""

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO
from zipfile import ZipFile

from trunkline.api.documents import Document, Reader, Section
from trunkline_documents.tables import markdown_table

if TYPE_CHECKING:
    from lxml.etree import _Element

PRESENTATION = "ppt/presentation.xml"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


class PptxReader(Reader):
    """A slide is a page."""

    name = "pptx"
    suffixes = (".pptx", ".pptm")

    def read(self, file: BinaryIO, name: str) -> Document:
        """See ``Reader.read``."""
        from trunkline_documents.zip_xml import open_archive

        archive = open_archive(file)
        slides = list(_slides(archive))
        sections = tuple(_section(archive, slide, number) for number, slide in enumerate(slides, start=1))
        return Document(sections=sections, pages=len(slides))


def _slides(archive: ZipFile) -> Iterator[str]:
    """The names of the slides' parts, in the order in which they are shown."""
    from trunkline_documents.zip_xml import read_part

    targets = _related(archive, PRESENTATION)
    for slide in read_part(archive, PRESENTATION).iter(f"{P}sldId"):
        if target := targets.get(slide.get(f"{R}id", "")):
            yield target[1]


def _related(archive: ZipFile, name: str) -> dict[str, tuple[str, str]]:
    """Return the relationships of a part: kind and name of the target part, by the id of the relationship."""
    from trunkline_documents.zip_xml import read_part

    folder, _, last = name.rpartition("/")
    references = f"{folder}/_rels/{last}.rels"
    if references not in archive.namelist():
        return {}
    return {
        one.get("Id", ""): (
            one.get("Type", "").rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, one.get("Target", ""))).lstrip("/"),
        )
        for one in read_part(archive, references)
    }


def _section(archive: ZipFile, name: str, number: int) -> Section:
    from trunkline_documents.zip_xml import read_part

    title, texts = "", []
    for shape in read_part(archive, name).iter(f"{P}sp", f"{A}tbl"):
        if shape.tag == f"{A}tbl":
            texts.append(_table(shape))
        elif not title and _is_title(shape):
            title = " ".join(_paragraphs(shape))
        else:
            texts.append("\n".join(_paragraphs(shape)))
    texts += [f"Notes: {text}" for text in _notes(archive, name)]
    heading = (title,) if title else (f"Slide {number}",)
    return Section(text="\n\n".join(filter(None, texts)) or title, heading=heading, page=number)


def _notes(archive: ZipFile, slide: str) -> Iterator[str]:
    from trunkline_documents.zip_xml import read_part

    for kind, target in _related(archive, slide).values():
        if kind == "notesSlide":
            for shape in read_part(archive, target).iter(f"{P}sp"):
                if _placeholder(shape) == "body" and (text := "\n".join(_paragraphs(shape))):
                    yield text


def _is_title(shape: "_Element") -> bool:
    return _placeholder(shape) in ("title", "ctrTitle")


def _placeholder(shape: "_Element") -> str:
    found = shape.find(f"{P}nvSpPr/{P}nvPr/{P}ph")
    return "" if found is None else found.get("type", "obj")


def _paragraphs(element: "_Element") -> list[str]:
    found = ["".join(run.text or "" for run in one.iter(f"{A}t")) for one in element.iter(f"{A}p")]
    return [text for text in found if text.strip()]


def _table(element: "_Element") -> str:
    return markdown_table(
        [[" ".join(_paragraphs(cell)) for cell in row.iter(f"{A}tc")] for row in element.iter(f"{A}tr")]
    )
