"""The ``Documents`` of tools: files of the workspace, read in a separate process, and search over collected documents.

``files`` opens the files that the call may open. A reader gets the open file and no path.
"""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import chain, zip_longest
from typing import BinaryIO, TypeVar

import anyio
import anyio.to_thread

from trunkline._util.paths import Folder
from trunkline.contracts.documents.messages import (
    ClearCollected,
    CollectDocument,
    CollectedDocument,
    Excerpt,
    ListCollected,
    SearchCollected,
)
from trunkline.contracts.documents.reader import Document, DocumentText, Reader
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.memory.operation import CALL_SECONDS
from trunkline.contracts.memory.paths import root_path
from trunkline.contracts.memory.search import MemoryHit
from trunkline.contracts.memory.subjects import (
    MEMORY_COLLECTION_ADD,
    MEMORY_COLLECTION_CLEAR,
    MEMORY_COLLECTION_LIST,
    MEMORY_COLLECTION_SEARCH,
)
from trunkline.documents.excerpts import page_of, text_around
from trunkline.documents.file_scan import CONVERTED_SUFFIX, MAX_TEXT, decode_text, documents_folder, sha256_of
from trunkline.documents.markdown import DocumentOrigin, parse_origin, to_markdown
from trunkline.documents.reader_pool import ReaderPool
from trunkline.documents.reader_registry import ReaderRegistry
from trunkline.errors import ToolError, UnreadableDocument, error_kind_for_code, error_kind_for_os
from trunkline_bus import Bus, BusError, Endpoint, RemoteFault

Q = TypeVar("Q")
A = TypeVar("A")

OpenFiles = Callable[[], AbstractContextManager[Folder]]
"""Opens the folder of files that a call may open."""


class BlockDocuments:
    """``Documents`` for one conversation of a block.

    ``reading`` is shared by all calls, so that few processes are started. ``memory`` finds the documents in memory, and
    limits the search to what the call may read.
    """

    def __init__(
        self,
        bus: Bus,
        block: str,
        conversation: str,
        files: OpenFiles,
        readers: ReaderRegistry,
        reading: ReaderPool,
        memory: Memory,
    ) -> None:
        self._bus = bus
        self._block = block
        self._conversation = conversation
        self._files = files
        self._readers = readers
        self._reading = reading
        self._memory = memory

    async def read(self, path: str) -> DocumentText:
        """Return a file of the workspace as text, converted by the reader for its name."""
        name = path.rpartition("/")[2]
        with self._files() as folder:
            try:
                with folder.open_read(path) as file:
                    return await self._read(name, file)
            except UnreadableDocument as error:
                raise ToolError(f"{path!r} cannot be read: {error.sentence}.", kind="unsupported") from error
            except OSError as error:
                raise ToolError(
                    f"{path!r} cannot be read: {(error.strerror or 'it failed').lower()}.",
                    kind=error_kind_for_os(error),
                ) from error

    async def _read(self, name: str, file: BinaryIO) -> DocumentText:
        reader = self._readers.reader_for(name)
        if reader is not None:
            return await self._converted(reader, name, file)
        data = await anyio.to_thread.run_sync(file.read, MAX_TEXT + 1)
        return DocumentText(name=name, source=name, text=decode_text(data))

    async def _converted(self, reader: Reader, name: str, file: BinaryIO) -> DocumentText:
        digest = await anyio.to_thread.run_sync(sha256_of, file)
        try:
            document = await self._reading.read(reader, file, name)
        finally:
            self._reading.stop_idle()
        text = to_markdown(document, DocumentOrigin(source=name, sha256=digest, reader=reader.name))
        if len(text) > MAX_TEXT:
            raise UnreadableDocument(f"it holds more than {MAX_TEXT // 1024 // 1024} MB of text")
        return DocumentText(
            name=name + CONVERTED_SUFFIX, source=name, text=text, title=document.title, pages=document.pages
        )

    async def convert(self, name: str, data: bytes, reader: Reader | None = None) -> Document:
        """Convert a file that is not in the workspace."""
        reader = reader or self._readers.reader_for(name)
        if reader is None:
            raise ToolError(
                f"{name!r} cannot be read: there is no reader for such files here.", kind="unsupported"
            )
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            try:
                return await self._reading.read(reader, file, name)
            except UnreadableDocument as error:
                raise ToolError(f"{name!r} cannot be read: {error.sentence}.", kind="unsupported") from error
            finally:
                self._reading.stop_idle()

    async def collect(self, name: str, text: str) -> None:
        """Add a text to the documents of the conversation."""
        request = CollectDocument(conversation=self._conversation, name=name, text=text)
        await self._call(MEMORY_COLLECTION_ADD, request)

    async def collected(self) -> Sequence[CollectedDocument]:
        """Return the documents of the conversation."""
        request = ListCollected(conversation=self._conversation)
        return (await self._call(MEMORY_COLLECTION_LIST, request)).documents

    async def clear(self) -> int:
        """Delete the documents of the conversation, and return their number."""
        request = ClearCollected(conversation=self._conversation)
        return (await self._call(MEMORY_COLLECTION_CLEAR, request)).documents

    async def search(self, query: str, *, limit: int = 8) -> Sequence[Excerpt]:
        """Return the best excerpts from the documents of the conversation, of the block, and of all blocks.

        The scores of the three collections cannot be compared, so the result takes one excerpt from each in turn, in
        this order.
        """
        request = SearchCollected(conversation=self._conversation, query=query, limit=limit)
        own = (await self._call(MEMORY_COLLECTION_SEARCH, request)).excerpts
        kept = [await self._kept(documents_folder(block), query, limit) for block in (self._block, None)]
        places = {(one.source, one.line): one for one in chain.from_iterable(zip_longest(own, *kept)) if one}
        return list(places.values())[:limit]

    async def _kept(self, folder: str, query: str, limit: int) -> list[Excerpt]:
        """Return the best excerpts from the documents below a folder of memory."""
        hits = (await self._memory.search(query, path=f"/{folder}", limit=limit)).hits
        texts: dict[str, str] = {}
        for hit in hits:
            if hit.path not in texts:
                texts[hit.path] = (await self._memory.read(hit.path)).content
        return [_excerpt(hit, texts[hit.path], f"/{root_path(self._block, hit.path)}") for hit in hits]

    async def _call(self, endpoint: Endpoint[Q, A], request: Q) -> A:
        try:
            return await self._bus.call(endpoint, request, timeout=CALL_SECONDS)
        except RemoteFault as fault:
            raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
        except BusError as error:
            raise ToolError("Memory is not available right now. Try again.", kind="unavailable") from error


def _excerpt(hit: MemoryHit, text: str, path: str) -> Excerpt:
    came = parse_origin(text)
    return Excerpt(
        source=came.source if came else hit.path.rpartition("/")[2],
        text=text_around(text, hit.line),
        line=hit.line,
        page=page_of(text, hit.line),
        path=path,
        score=hit.score,
    )
