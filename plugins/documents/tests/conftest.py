"""Reading as it is done for people: in a process of its own."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from trunkline.api.documents import Document
from trunkline.config.settings import DocumentsSettings
from trunkline.documents.reader_pool import reader_pool
from trunkline.documents.reader_registry import ReaderRegistry
from trunkline_documents.plugin import trunkline_readers

HERE = str(Path(__file__).parent)
sys.path.insert(0, HERE)


@pytest.fixture(autouse=True)
def _found_in_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules beside the tests can be imported by the process of a reader."""
    monkeypatch.setenv("PYTHONPATH", HERE)


Read = Callable[[str, bytes], Awaitable[Document]]


@pytest.fixture
async def read() -> AsyncIterator[Read]:
    """Reads bytes under a name."""
    readers = ReaderRegistry(trunkline_readers())
    async with reader_pool(DocumentsSettings(read_timeout=20, read_memory_mb=512)) as pool:

        async def run(name: str, data: bytes) -> Document:
            reader = readers.reader_for(name)
            assert reader is not None
            with TemporaryFile() as file:
                file.write(data)
                file.seek(0)
                return await pool.read(reader, file, name)

        yield run
