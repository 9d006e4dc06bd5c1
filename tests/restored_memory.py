"""Memory as it was before a test, for tests that share a platform and write files which all blocks read."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.testing.platform import Platform

UNRESTORED = ("blocks", "audit")
"""Folders that are left alone: a test has a block of its own, and the audit log only grows."""


@asynccontextmanager
async def restored_memory(running: Platform) -> AsyncIterator[None]:
    """Restore at the end every file of memory outside of the folders of blocks."""
    before = _texts(running.home.memory)
    yield
    after = _texts(running.home.memory)
    changed = {path: text for path, text in before.items() if after.get(path) != text}
    gone = tuple(path for path in after if path not in before)
    if changed or gone:
        request = WriteManyMemory(
            files=changed, gone=gone, actor="owner", reason="Restore what was before a test"
        )
        await running.bus.call(MEMORY_WRITE_MANY, request)


def _texts(memory: Path) -> dict[str, str]:
    files = (path.relative_to(memory) for path in memory.rglob("*") if path.is_file())
    return {
        path.as_posix(): (memory / path).read_text()
        for path in files
        if path.parts[0] not in UNRESTORED and not path.parts[0].startswith(".")
    }
