"""Documents: what lies under ``documents/``, of the whole memory or of a block. A form feed begins a new page, as in
the text that readers of paged formats write."""

import re

from trunkline.memory.index.passage import LARGEST, Passage, as_text
from trunkline.memory.index.plain import cut

_DOCUMENT = re.compile(r"(blocks/[^/]+/)?documents/.+")


def is_document(path: str) -> bool:
    """Whether a path is a document's."""
    return _DOCUMENT.fullmatch(path) is not None


def document_passages(path: str, data: bytes) -> list[Passage]:
    """The passages of a document, each with the page it begins on; no pages where there is no form feed."""
    text = as_text(data[:LARGEST])
    if text is None:
        return []
    found: list[Passage] = []
    paged, above = "\f" in text, 0
    for number, page in enumerate(text.split("\f"), start=1):
        for line, piece in cut(page):
            found.append(Passage(above + line, piece, kind="document", page=number if paged else 0))
        above += page.count("\n")
    return found
