"""The documents of a conversation: stored beside memory for as long as the conversation exists, and found by the same
search.
"""

import msgspec

from trunkline.contracts.memory.operation import query
from trunkline_bus import Payload


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """A passage of a document.

    ``source`` is the document's file name. ``path`` is its path in memory, "" for a document that belongs only to the
    conversation. ``page`` counts from 1, None if the format has no pages; ``line`` is the line in the stored text. A
    higher ``score`` is a better match.
    """

    source: str
    text: str
    line: int
    page: int | None = None
    path: str = ""
    score: float = 0.0

    @property
    def citation(self) -> str:
        """The citation of the passage for people."""
        return f"{self.source}, page {self.page}" if self.page else f"{self.source}, line {self.line}"


class CollectDocument(Payload, frozen=True, kw_only=True, tag="memory.collect.v1"):
    """Add a document to a conversation's collection; a document of the same name is replaced. The suffix of ``name``
    is the format of the text: ``.md`` for the output of a reader.
    """

    conversation: str
    name: str
    text: str


class ListCollected(Payload, frozen=True, kw_only=True, tag="memory.collected.v1"):
    """Ask for the documents of a conversation."""

    conversation: str


class CollectedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document of a conversation. ``size`` is the length of the text in bytes."""

    name: str
    size: int


class CollectedDocuments(Payload, frozen=True, kw_only=True, tag="memory.collected-list.v1"):
    """The documents, sorted by name."""

    documents: tuple[CollectedDocument, ...] = ()


class SearchCollected(Payload, frozen=True, kw_only=True, tag="memory.collected-search.v1"):
    """Search the documents of a conversation, best first."""

    conversation: str
    query: str
    limit: int = 8


class Excerpts(Payload, frozen=True, kw_only=True, tag="memory.excerpts.v1"):
    """The passages found, best first."""

    excerpts: tuple[Excerpt, ...] = ()


class ClearCollected(Payload, frozen=True, kw_only=True, tag="memory.collected-clear.v1"):
    """Delete a conversation's documents permanently."""

    conversation: str


class CollectionCleared(Payload, frozen=True, kw_only=True, tag="memory.collected-cleared.v1"):
    """The documents are deleted. ``documents`` is their number."""

    documents: int


MEMORY_COLLECTION_ADD = query(
    "collect", CollectDocument, CollectedDocuments, "Store a document with a conversation.", ("tools",)
)
MEMORY_COLLECTION_LIST = query(
    "collected", ListCollected, CollectedDocuments, "A conversation's documents.", ("tools",)
)
MEMORY_COLLECTION_SEARCH = query(
    "collected-search", SearchCollected, Excerpts, "Search a conversation's documents.", ("tools",)
)
MEMORY_COLLECTION_CLEAR = query(
    "collected-clear", ClearCollected, CollectionCleared, "Remove a conversation's documents.", ("tools",)
)
