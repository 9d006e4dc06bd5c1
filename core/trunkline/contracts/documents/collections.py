"""The documents of conversations: texts that only one conversation searches."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from trunkline.contracts.documents.messages import CollectedDocument, Excerpt


class DocumentCollections(ABC):
    """Stores the documents of conversations. They are not part of memory's history or of an export.

    The content is derived: each document can be read again from its source, so losing the store loses nothing else.
    Methods may run concurrently. A document that ``put`` has stored is found by each later ``documents`` and ``search``
    of its conversation, until it is removed; that it outlives a crash of the machine is not guaranteed. Methods other
    than ``put`` raise OSError if the folder cannot be read. A damaged collection is replaced by an empty one.
    """

    @abstractmethod
    async def put(self, conversation: str, name: str, text: str) -> None:
        """Add a document to a conversation, or replace it. Raise Refusal ``write_failure`` if there is no room."""

    @abstractmethod
    async def documents(self, conversation: str) -> tuple[CollectedDocument, ...]:
        """Return a conversation's documents, sorted by name."""

    @abstractmethod
    async def search(self, conversation: str, query: str, limit: int) -> tuple[Excerpt, ...]:
        """Return at most ``limit`` passages of a conversation's documents, best first; none for an unknown
        conversation. Counts as a use of the documents.
        """

    @abstractmethod
    async def clear(self, conversation: str) -> int:
        """Remove a conversation's documents, and return their number, 0 if there are none."""

    @abstractmethod
    async def run_cleanup(self, lives: Callable[[str], Awaitable[bool]], unused: float) -> None:
        """Remove documents that were not used for ``unused`` seconds, and documents of conversations for which
        ``lives`` is false. Run until cancelled.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close all files. Called once; no other method is called afterwards."""
