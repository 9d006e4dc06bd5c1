"""Adds documents to memory for the owner, as ``trunkline memory add`` does: the same readers in processes of their own,
the same folder, names and origin. An uploaded document is on disk while it is read.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trunkline._util.private_folders import make_private
from trunkline._util.text import printable
from trunkline.config.settings import DocumentsSettings
from trunkline.contracts.documents.reader import Reader
from trunkline.contracts.memory.files import MEMORY_READ_MANY, ReadManyMemory
from trunkline.contracts.memory.operation import CALL_SECONDS
from trunkline.contracts.memory.path_rules import normalize_path
from trunkline.documents.file_scan import documents_folder, scan
from trunkline.documents.ingester import FRONT_MATTER_CHARACTERS, Ingester, SkippedFile
from trunkline.documents.markdown import DocumentFacts, parse_facts
from trunkline.documents.reader_pool import ReaderPool
from trunkline.documents.reader_registry import ReaderRegistry
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import InvalidField, error_code, refusal
from trunkline.workers.gateway.sender import Sender
from trunkline_bus import Bus, Refusal

FOLDER = documents_folder(None)
"""The folder in memory for documents of all blocks."""

FILE = ("file",)
"""The field of a form that has the document."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document in memory. ``added`` is False if memory already had the same document."""

    path: str
    added: bool
    facts: DocumentFacts


class DocumentService:
    """Reads uploaded documents and adds their text to memory. ``scratch`` is the folder for uploads, ``max_size`` the
    largest document in bytes. The documents that are read at the same time share a pool of reader processes.

    Methods raise Refusal: ``forbidden`` for anybody but the owner with a token for all blocks. They raise BusError when
    memory does not answer, and OSError.
    """

    def __init__(
        self,
        bus: Bus,
        scratch: Path,
        readers: Callable[[], Iterable[Reader]],
        settings: DocumentsSettings,
        max_size: int,
    ) -> None:
        self._bus = bus
        self._scratch = scratch
        self._readers = readers
        self._pool = ReaderPool(settings)
        self.max_size = max_size

    @contextmanager
    def upload_folder(self, sender: Sender) -> Iterator[Path]:
        """Yield an empty folder for an upload. It is deleted at the end of the block."""
        sender.require_administrator("adds documents to memory")
        make_private(self._scratch)
        with tempfile.TemporaryDirectory(prefix=".transfer-", dir=self._scratch) as folder:
            yield Path(folder)

    async def add(self, source: Path, sender: Sender) -> StoredDocument:
        """Read a document and add its text to memory. Another document of the same name is never replaced.

        Cancelling the call kills the reader, and nothing is stored unless the write has begun.

        Raises:
            InvalidField: the document cannot be read or stored; the reason says why and what to install.
            Refusal: ``conflict`` if memory has another document of this name.
        """
        actor = sender.require_administrator("adds documents to memory")
        readers = ReaderRegistry(self._readers())
        (file,) = scan(source, FOLDER, readers)
        ingester = Ingester(self._bus, readers, self._pool, actor=actor, replace=False)
        try:
            report = await ingester.ingest([file])
        finally:
            self._pool.stop_idle()
        for skipped in report.skipped:
            raise _refused(skipped)
        return StoredDocument(file.target, bool(report.added), await self._facts(file.target))

    async def _facts(self, path: str) -> DocumentFacts:
        request = ReadManyMemory(paths=(path,), max_characters=FRONT_MATTER_CHARACTERS)
        files = (await self._bus.call(MEMORY_READ_MANY, request, timeout=CALL_SECONDS)).files
        return parse_facts(files[0].content) if files else DocumentFacts()


def checked_name(name: str) -> str:
    """Return the name of an uploaded document. Raises InvalidField for a name that is a path, that people would read
    as another name, or that memory does not allow.
    """
    if "/" in name or name in ("", "."):
        raise InvalidField(FILE, "Its name is no file name. Send the name without folders.")
    if printable(name) != name:  # such as a mark that turns the text behind it round
        raise InvalidField(
            FILE, "Its name does not read as it is: it has control characters. Rename the file."
        )
    try:
        normalize_path(f"{FOLDER}/{name}")
    except Refusal as error:
        raise InvalidField(FILE, error.message) from error
    return name


def _refused(skipped: SkippedFile) -> Refusal:
    code = error_code(skipped.code) if skipped.code else ErrorCode.INVALID_REQUEST
    if code == ErrorCode.INVALID_REQUEST:
        return InvalidField(FILE, f"The document was not added: {skipped.reason.rstrip('.')}.")
    return refusal(code, skipped.reason if code == ErrorCode.CONFLICT else "")
