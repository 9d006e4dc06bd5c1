"""Books (EPUB): the chapters in reading order, under the headings that their pages have."""

import posixpath
from collections.abc import Iterator
from typing import BinaryIO
from urllib.parse import unquote
from zipfile import ZipFile

from trunkline.api.documents import Document, Reader, Section, UnreadableDocument
from trunkline_documents.html import read_html

CONTAINER = "META-INF/container.xml"


class EpubReader(Reader):
    """Books flow, so there are no pages; a hit is cited by its headings and line."""

    name = "epub"
    suffixes = (".epub",)

    def read(self, file: BinaryIO, name: str) -> Document:
        """See ``Reader.read``."""
        from trunkline_documents.zip_xml import local_attribute, open_archive, read_part

        archive = open_archive(file)
        roots = [
            local_attribute(one, "full-path") for one in read_part(archive, CONTAINER).iter("{*}rootfile")
        ]
        if not roots:
            raise UnreadableDocument("it is broken: it has no package document")
        package = read_part(archive, roots[0])
        title = package.findtext(".//{*}metadata/{*}title") or ""
        items = {local_attribute(one, "id"): local_attribute(one, "href") for one in package.iter("{*}item")}
        spine = [items.get(local_attribute(one, "idref"), "") for one in package.iter("{*}itemref")]
        folder = posixpath.dirname(roots[0])
        places = [posixpath.normpath(posixpath.join(folder, unquote(href))) for href in spine if href]
        return Document(sections=tuple(_chapters(archive, places)), title=title)


def _chapters(archive: ZipFile, places: list[str]) -> Iterator[Section]:
    held = frozenset(archive.namelist())
    for place in places:
        if place in held:
            yield from read_html(archive.read(place))[1]
