"""The processes that read documents."""

import sys
from pathlib import Path

import pytest

from trunkline.config.settings import DocumentsSettings
from trunkline.documents.reader_pool import ReaderProcess


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_process_that_cannot_start_leaves_no_descriptor_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file that is read may start a process, so a leak would exhaust the descriptors of the worker."""
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    before = descriptors()
    for _ in range(10):
        with pytest.raises(FileNotFoundError):
            ReaderProcess(DocumentsSettings())
    assert descriptors() == before
