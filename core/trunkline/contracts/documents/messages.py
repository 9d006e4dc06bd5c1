"""The documents of a conversation: kept beside memory as long as it is, and found by the same search."""

import msgspec

from trunkline.contracts.memory.operation import query
from trunkline_bus import Payload


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a document, and what stands around it.

    ``source`` is the file that it comes from, ``path`` where it lies in memory ("" for a document of the conversation
    alone). ``page`` counts from 1, None where there are no pages; ``line`` is that of the text as it is kept.
    """

    source: str
    text: str
    line: int
    page: int | None = None
    path: str = ""
    score: float = 0.0

    @property
    def citation(self) -> str:
        """The name that a person would give the place."""
        return f"{self.source}, page {self.page}" if self.page else f"{self.source}, line {self.line}"


class CollectDocument(Payload, frozen=True, kw_only=True, tag="memory.collect.v1"):
    """Put a document into a conversation's collection; one of the same name is replaced. ``name`` ends as the text is
    to be understood: ``.md`` for what a reader made."""

    conversation: str
    name: str
    text: str


class ListCollected(Payload, frozen=True, kw_only=True, tag="memory.collected.v1"):
    """Ask for the documents of a conversation."""

    conversation: str


class CollectedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document of a conversation; ``size`` is in bytes of text."""

    name: str
    size: int


class CollectedDocuments(Payload, frozen=True, kw_only=True, tag="memory.collected-list.v1"):
    """The documents, by name."""

    documents: tuple[CollectedDocument, ...] = ()


class SearchCollected(Payload, frozen=True, kw_only=True, tag="memory.collected-search.v1"):
    """Search the documents of a conversation, best first."""

    conversation: str
    query: str
    limit: int = 8


class Excerpts(Payload, frozen=True, kw_only=True, tag="memory.excerpts.v1"):
    """The excerpts that were found, best first."""

    excerpts: tuple[Excerpt, ...] = ()


class ClearCollected(Payload, frozen=True, kw_only=True, tag="memory.collected-clear.v1"):
    """Throw a conversation's documents away for good."""

    conversation: str


class CollectionCleared(Payload, frozen=True, kw_only=True, tag="memory.collected-cleared.v1"):
    """They are gone, so many."""

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
