"""Formats that are a ZIP of XML: opened with a look at what they unpack to, and parsed without any entity."""

import zipfile
from typing import BinaryIO

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - lxml has no stubs

from trunkline.api.documents import UnreadableDocument

MOST_UNPACKED = 512 * 1024 * 1024
MOST_PARTS = 20_000


def open_archive(file: BinaryIO) -> zipfile.ZipFile:
    """The archive. Raises UnreadableDocument for what is none, is encrypted, or would unpack to too much."""
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise UnreadableDocument("it is broken: it is not a ZIP archive") from error
    parts = archive.infolist()
    if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_UNPACKED:
        raise UnreadableDocument("it would unpack to far more than the size limit")
    if any(part.flag_bits & 1 for part in parts):
        raise UnreadableDocument("it is protected by a password")
    return archive


def read_part(archive: zipfile.ZipFile, name: str) -> etree._Element:
    """A part, parsed. Raises UnreadableDocument when it is missing or broken."""
    try:
        with archive.open(name) as file:
            data = file.read(MOST_UNPACKED)
        return parse_xml(data)
    except KeyError as error:
        raise UnreadableDocument(f"it is broken: it has no {name}") from error


def parse_xml(data: bytes) -> etree._Element:
    """Parse XML: no entities, no network, no other files."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise UnreadableDocument(f"it is broken: {error.msg}") from error


def local_attribute(element: etree._Element, name: str) -> str:
    """An attribute by its local name, whatever its namespace; "" when it has none."""
    return next((str(value) for key, value in element.items() if etree.QName(key).localname == name), "")
