"""The kind of file at a path, which decides how it is split."""

import logging
import re

import msgspec

from trunkline.api.memory import is_untouched
from trunkline.api.store import conversation_of_attachment, is_log_path, parse_conversation_path
from trunkline_git_store.index.chunk import chunk_passages, is_chunk
from trunkline_git_store.index.conversation import conversation_passages
from trunkline_git_store.index.document_splitter import split_document
from trunkline_git_store.index.passage import MAX_INDEXED_BYTES, Passage, try_decode_text
from trunkline_git_store.index.plain_text import plain_passages

_EPISODE = re.compile(r"models/[^/]+/episodes/")

_log = logging.getLogger(__name__)


_DOCUMENT = re.compile(r"(blocks/[^/]+/)?documents/.+")


def is_episode(path: str) -> bool:
    """Report whether a file retells what a turn was about: the turn itself is evidence."""
    return _EPISODE.match(path) is not None


def file_passages(path: str, data: bytes) -> list[Passage]:
    """The passages of a file; none when it is not text. Of very long files the beginning counts.

    One that cannot be taken apart as what it is counts as plain text: no file may keep the others from being found.
    """
    try:
        return _as_its_kind(path, data)
    except Exception:
        _log.exception("%s cannot be parsed as its file type and is indexed as plain text", path)
        return plain_passages(path, data)


def _as_its_kind(path: str, data: bytes) -> list[Passage]:
    if is_log_path(path):
        return []  # who did what, and at what cost, is nothing that anybody remembered
    if conversation_of_attachment(path) is not None:
        return []  # it belongs to its message, which may be in a conversation that no search finds
    if is_chunk(path):
        return chunk_passages(path, data)
    if parse_conversation_path(path) is not None:
        return conversation_passages(path, data)
    if is_untouched(path, data.decode(errors="replace")):
        return []  # what memory begins with is nothing that anybody remembered, and the instructions are told anyway
    if is_document(path):
        return document_passages(path, data)
    if is_episode(path):
        return [msgspec.structs.replace(one, aside=True) for one in plain_passages(path, data)]
    return plain_passages(path, data)


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
