"""The documents of conversations: texts that are searched in one conversation only."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from trunkline.contracts.documents.messages import CollectedDocument, Excerpt


class DocumentCollections(ABC):
    """Keeps the documents of conversations. They are no part of memory's history or of an export.

    What is kept is derived: the document can be read again. Losing all of it loses nothing else.
    """

    @abstractmethod
    async def put(self, conversation: str, name: str, text: str) -> None:
        """Add a document to a conversation, or replace it. Raises Refusal ``write_failure`` when there is no room."""

    @abstractmethod
    async def documents(self, conversation: str) -> tuple[CollectedDocument, ...]:
        """Return a conversation's documents, sorted by name."""

    @abstractmethod
    async def search(self, conversation: str, query: str, limit: int) -> tuple[Excerpt, ...]:
        """Return the best passages of a conversation's documents, the best first."""

    @abstractmethod
    async def clear(self, conversation: str) -> int:
        """Remove a conversation's documents, and return how many there were."""

    @abstractmethod
    async def run_cleanup(self, lives: Callable[[str], Awaitable[bool]], unused: float) -> None:
        """Remove documents that were not used for ``unused`` seconds, and those of conversations of which ``lives``
        is false. Runs until it is cancelled."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close all files."""
