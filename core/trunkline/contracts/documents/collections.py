"""The documents of conversations: texts that only one conversation searches."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from trunkline.contracts.documents.messages import CollectedDocument, Excerpt


class DocumentCollections(ABC):
    """Stores the documents of conversations. They are not part of memory's history or of an export.

    The content is derived: each document can be read again from its source, so losing the store loses nothing else. A
    damaged collection is replaced by an empty one.

    Guarantees: a document that ``put`` has stored is found by each later ``documents`` and ``search`` of its
    conversation, until it is removed. Methods may run concurrently.

    Not guaranteed: that a document outlives a crash of the machine.
    """

    @abstractmethod
    async def put(self, conversation: str, name: str, text: str) -> None:
        """Add a document to a conversation, or replace it.

        Raises:
            Refusal: ``write_failure``: there is no room, or the document cannot be written. ``invalid_path``: the name
                is not valid.
        """

    @abstractmethod
    async def documents(self, conversation: str) -> tuple[CollectedDocument, ...]:
        """Return a conversation's documents, sorted by name; none for an unknown conversation. Raises OSError if the
        folder cannot be read.
        """

    @abstractmethod
    async def search(self, conversation: str, query: str, limit: int) -> tuple[Excerpt, ...]:
        """Return at most ``limit`` passages of a conversation's documents, best first; none for an unknown
        conversation. Counts as a use of the documents. Raises OSError if the folder cannot be read.
        """

    @abstractmethod
    async def clear(self, conversation: str) -> int:
        """Remove a conversation's documents, and return their number, 0 if there are none. Raises OSError if the folder
        cannot be read or deleted.
        """

    @abstractmethod
    async def run_cleanup(self, lives: Callable[[str], Awaitable[bool]], unused: float) -> None:
        """Remove documents that were not used for ``unused`` seconds, and documents of conversations for which
        ``lives`` is false. Run until cancelled. A collection may be kept for a time although its conversation does not
        exist, because a first turn is stored at its end.

        Raises:
            Exception: the memory worker ends, and is started again.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close all files. Called once; no other method is called afterwards. Raises nothing. An exception is reported
        as a failure of the worker.
        """
