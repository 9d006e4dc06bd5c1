"""The collections of all conversations, below a folder of the cache, and when they go.

Names of folders are hashes, because an id is not a file's name.
"""

import hashlib
import logging
import shutil
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import apsw
import pygit2

from trunkline import StorageError
from trunkline.api.bus import Refusal
from trunkline.api.documents import CollectedDocument, DocumentCollections, Excerpt
from trunkline_git_store.document_collections.collection import DocumentCollection

_log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_OPEN = 8
"""The number of collections that stay open."""

CLEANUP_INTERVAL = 60.0
GRACE_SECONDS = 3_600.0
"""Seconds that an unused collection is kept while no conversation of its name is stored: a first turn is
stored at its end."""


class CollectionStore(DocumentCollections):
    """The collections below a folder. A few stay open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._limiter = anyio.CapacityLimiter(1)
        self._open: OrderedDict[Path, DocumentCollection] = OrderedDict()

    async def put(self, conversation: str, name: str, text: str) -> None:
        """Add a document to a conversation. Raises Refusal."""
        await self._thread(lambda: self._put(conversation, name, text))

    async def documents(self, conversation: str) -> tuple[CollectedDocument, ...]:
        """A conversation's documents."""
        return await self._thread(
            lambda: (
                tuple(self._open_collection(conversation).documents()) if self._exists(conversation) else ()
            )
        )

    async def search(self, conversation: str, query: str, limit: int) -> tuple[Excerpt, ...]:
        """The best places in a conversation's documents."""
        return await self._thread(
            lambda: (
                tuple(self._open_collection(conversation).search(query, limit))
                if self._exists(conversation)
                else ()
            )
        )

    async def clear(self, conversation: str) -> int:
        """Throw a conversation's documents away; how many there were."""
        return await self._thread(lambda: self._clear(conversation))

    async def run_cleanup(self, lives: Callable[[str], Awaitable[bool]], unused: float) -> None:
        """Throw away what belongs to no conversation any more, or was not used for ``unused`` seconds. Runs until it is
        cancelled."""
        while True:
            for conversation, idle in await self._thread(self._idle):
                try:
                    if idle > unused or (idle > GRACE_SECONDS and not await lives(conversation)):
                        await self.clear(conversation)
                except (Refusal, StorageError, apsw.Error, pygit2.GitError, OSError, KeyError) as error:
                    _log.warning("the documents of %s are cleaned up later: %s", conversation, error)
            await anyio.sleep(CLEANUP_INTERVAL)

    async def aclose(self) -> None:
        """Close what is open."""
        await self._thread(self._close)

    def _put(self, conversation: str, name: str, text: str) -> None:
        try:
            self._open_collection(conversation).put(name, text)
        except (OSError, pygit2.GitError) as error:
            raise Refusal("write_failure", f"The document could not be stored: {error}.") from error

    def _close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def _place(self, conversation: str) -> Path:
        return self._folder / hashlib.sha256(conversation.encode("utf-8", "replace")).hexdigest()[:32]

    def _exists(self, conversation: str) -> bool:
        return (self._place(conversation) / ".git").is_dir()

    def _open_collection(self, conversation: str) -> DocumentCollection:
        place = self._place(conversation)
        found = self._open.pop(place, None) or _opened(place)
        self._open[place] = found
        while len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)[1].close()
        (place / "conversation").write_text(conversation, "utf-8", "replace")  # and this is when it was used
        return found

    def _clear(self, conversation: str) -> int:
        place = self._place(conversation)
        if not self._exists(conversation):
            return 0
        found = self._open.pop(place, None) or _opened(place)
        count = len(found.documents())
        found.close()
        shutil.rmtree(place)
        return count

    def _idle(self) -> list[tuple[str, float]]:
        """The conversations that have documents, and for how many seconds nobody has used them."""
        found = []
        for place in self._folder.glob("*/conversation"):
            with suppress(OSError, UnicodeDecodeError):
                found.append((place.read_text("utf-8"), time.time() - place.stat().st_mtime))
        return found

    async def _thread(self, job: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(job, limiter=self._limiter)


def _opened(place: Path) -> DocumentCollection:
    """Return the collection in a folder. A damaged one starts empty: the content of a cache can be read again."""
    try:
        return DocumentCollection(place)
    except (KeyError, ValueError, pygit2.GitError, StorageError) as error:
        _log.warning("the documents in %s are damaged and are discarded: %s", place, error)
        shutil.rmtree(place, ignore_errors=True)
        return DocumentCollection(place)
