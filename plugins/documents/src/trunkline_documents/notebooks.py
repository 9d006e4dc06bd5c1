"""Notebooks (IPYNB): prose and code in their order, with what the code printed."""

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from trunkline.api.documents import Document, Reader, Section, UnreadableDocument

MOST_PRINTED = 2_000
"""Characters of what a cell printed: a log of a training is no knowledge."""

_Text = str | list[str]


class _Output(msgspec.Struct):
    text: _Text = ""


class _Cell(msgspec.Struct):
    cell_type: str
    source: _Text = ""
    outputs: list[_Output] = []


class _Notebook(msgspec.Struct):
    cells: list[_Cell]


class NotebookReader(Reader):
    """A section for each cell."""

    name = "notebook"
    suffixes = (".ipynb",)

    def read(self, file: BinaryIO, name: str) -> Document:
        """See ``Reader.read``."""
        try:
            notebook = msgspec.json.decode(file.read(), type=_Notebook)
        except msgspec.DecodeError as error:
            raise UnreadableDocument("it is broken: it is not a notebook") from error
        return Document(sections=tuple(section for cell in notebook.cells for section in _sections(cell)))


def _sections(cell: _Cell) -> Iterator[Section]:
    source = _joined(cell.source)
    if cell.cell_type != "code":
        yield Section(text=source)
        return
    printed = "".join(_joined(one.text) for one in cell.outputs)[:MOST_PRINTED]
    yield Section(text=f"```\n{source}\n```" + (f"\n\nIt printed:\n\n```\n{printed}\n```" if printed else ""))


def _joined(text: _Text) -> str:
    return text if isinstance(text, str) else "".join(text)
