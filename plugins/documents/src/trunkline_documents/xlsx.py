"""Spreadsheets (XLSX): every sheet as tables of some rows, each with the header, values in place of formulas."""

from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any, BinaryIO

from trunkline.api.documents import Document, Reader, Section, UnreadableDocument
from trunkline_documents.tables import table_portions


class XlsxReader(Reader):
    """Sheets are headings, and so are the rows that stand under them."""

    name = "xlsx"
    suffixes = (".xlsx", ".xlsm")

    def read(self, file: BinaryIO, name: str) -> Document:
        """See ``Reader.read``."""
        import openpyxl
        from openpyxl.utils.exceptions import InvalidFileException

        from trunkline_documents.zip_xml import open_archive

        open_archive(file)
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        except (InvalidFileException, KeyError, ValueError) as error:
            raise UnreadableDocument("it is broken: it is not a spreadsheet") from error
        sections = tuple(section for sheet in book.worksheets for section in _sections(sheet))
        return Document(sections=sections, title=(book.properties.title if book.properties else "") or "")


def _sections(sheet: Any) -> Iterator[Section]:
    sheet.reset_dimensions()  # a file may claim a million rows that it has not
    for first, last, text in table_portions(_rows(sheet)):
        yield Section(text=text, heading=(sheet.title, f"Rows {first} to {last}"))


def _rows(sheet: Any) -> Iterator[list[str]]:
    for values in sheet.iter_rows(values_only=True):
        row = [_cell(value) for value in values]
        while row and not row[-1]:
            row.pop()
        if row:
            yield row


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)
