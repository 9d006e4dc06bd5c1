"""The authors of a file, when history answers late."""

from datetime import UTC, datetime
from typing import Any, cast

import anyio
import pytest

from trunkline import Memory, MemoryFile
from trunkline.contracts.memory.history import BlamedLines, MemoryBlame
from trunkline_personality.authors import AuthorCache

pytestmark = pytest.mark.anyio

SOUL = MemoryFile(path="identity/SOUL.md", content="Be kind.\n", hash="1", modified_at=datetime.now(UTC))


class LateMemory:
    """A memory whose history takes ``seconds`` to say that the owner wrote all."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked = 0

    async def blame(self, path: str, **_: Any) -> MemoryBlame:
        self.asked += 1
        await anyio.sleep(self.seconds)
        line = BlamedLines(
            version="v", timestamp=datetime.now(UTC), author="owner", first=1, lines=("Be kind.",)
        )
        return MemoryBlame(path=path, version="v", spans=(line,))


async def owned(authors: AuthorCache, memory: LateMemory) -> bool:
    return await authors.is_written_by_owner(cast(Memory, memory), "/identity/SOUL.md", SOUL)


async def test_a_history_that_timed_out_once_is_read_again() -> None:
    """A single slow answer must not mark the owner's words as data for the lifetime of the process."""
    authors, memory = AuthorCache(timeout=0.05, pause=0.0), LateMemory(3600)
    assert not await owned(authors, memory)
    memory.seconds = 0.0
    assert await owned(authors, memory)
    assert await owned(authors, memory) and memory.asked == 2, "what is known is not asked for"


async def test_a_slow_history_is_not_asked_again_for_a_while() -> None:
    """Not every turn waits for it."""
    authors, memory = AuthorCache(timeout=0.05, pause=3600), LateMemory(3600)
    assert not await owned(authors, memory)
    memory.seconds = 0.0
    assert not await owned(authors, memory) and memory.asked == 1
