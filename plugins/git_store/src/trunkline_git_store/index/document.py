"""Documents: what lies under ``documents/``, of the whole memory or of a block. Each piece of one is a passage."""

import re

from trunkline_git_store.index.document_splitter import split_document
from trunkline_git_store.index.passage import MAX_INDEXED_BYTES, Passage, try_decode_text

_DOCUMENT = re.compile(r"(blocks/[^/]+/)?documents/.+")


def is_document(path: str) -> bool:
    """Report whether a path is a document's."""
    return _DOCUMENT.fullmatch(path) is not None


def document_passages(path: str, data: bytes) -> list[Passage]:
    """The passages of a document, each with the page it begins on. What stands above a piece, its headings or the names
    of its columns, is found with it."""
    text = try_decode_text(data[:MAX_INDEXED_BYTES])
    if text is None:
        return []
    return [
        Passage(piece.line, piece.text, kind="document", page=piece.page, before=piece.headings)
        for piece in split_document(path, text)
    ]
