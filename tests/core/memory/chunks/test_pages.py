"""Pages of chunks for a caller from whom some chunks are hidden."""

from pathlib import Path

import pytest

from trunkline.contracts.memory import chunks
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.memory.chunks import MEMORY_CHUNKS, MEMORY_REMEMBER, ChunkPage, ListChunks, Remember
from trunkline.contracts.memory.learned_visibility import recipient_of
from trunkline.errors import ToolError
from trunkline.testing.platform import Platform, platform

pytestmark = pytest.mark.anyio

ORDER = "baaaabaabaa"
"""Who each fact is about, the newest first: ``b`` is Bob, whose facts Ada may not see."""


async def remember_facts(running: Platform) -> None:
    for number, who in enumerate(reversed(ORDER)):
        fact = Remember(
            content=f"{who} {number}", actor="owner", conversation_id="c", block="main", source="learned",
            layer="project_global", fields={"person": {"a": "ada", "b": "bob"}[who]},
        )  # fmt: skip
        await running.bus.call(MEMORY_REMEMBER, fact)


@pytest.mark.parametrize("batch", [3, 1_000])
async def test_pages_with_hidden_chunks_have_each_visible_chunk_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """Offsets and the total count the chunks that the caller may see, also on a page without a hidden chunk."""
    monkeypatch.setattr(chunks, "MAX_REPLACED_CHUNKS", batch)
    async with platform(tmp_path, workers=("memory",)) as running:
        await remember_facts(running)
        ada = block_memory(running.bus, "main", "ada", recipient=recipient_of("main", "ada")).transport
        for limit in (1, 2, 3, 20):
            seen: list[str] = []
            while len(seen) < ORDER.count("a"):
                page = await ada.call(MEMORY_CHUNKS, ListChunks(actor="", limit=limit, offset=len(seen)))
                assert page.total == ORDER.count("a")
                assert len(page.chunks) == min(limit, page.total - len(seen))
                seen += [chunk.content for chunk in page.chunks]
            assert len(set(seen)) == len(seen)
            assert all(text.startswith("a") for text in seen)
            after = await ada.call(MEMORY_CHUNKS, ListChunks(actor="", limit=limit, offset=len(seen)))
            assert (after.chunks, after.total) == ((), ORDER.count("a"))


async def test_a_path_that_may_not_be_read_is_not_counted(tmp_path: Path) -> None:
    """The same holds for chunks that the policies hide."""
    async with platform(tmp_path, workers=("memory",)) as running:
        await remember_facts(running)
        shown = await running.bus.call(MEMORY_CHUNKS, ListChunks(actor="owner", block="main"))
        hidden = f"/{shown.chunks[0].path}"

        async def check(path: str, action: str, whole: bool) -> None:
            if whole or path == hidden:
                raise ToolError("It may not be read.", kind="permission_denied")

        memory = block_memory(running.bus, "main", "agent", check_access=check).transport
        pages: list[ChunkPage] = []
        for offset in range(len(ORDER)):
            pages.append(await memory.call(MEMORY_CHUNKS, ListChunks(actor="", limit=1, offset=offset)))
        ids = [chunk.id for page in pages for chunk in page.chunks]
        assert ids == [chunk.id for chunk in shown.chunks[1:]]
        assert {page.total for page in pages} == {len(ORDER) - 1}


async def test_an_unrestricted_caller_gets_the_total_of_memory(tmp_path: Path) -> None:
    """The total includes the chunks of other pages."""
    async with platform(tmp_path, workers=("memory",)) as running:
        await remember_facts(running)
        memory = block_memory(running.bus, "main", "agent").transport
        page = await memory.call(MEMORY_CHUNKS, ListChunks(actor="", limit=2, offset=3))
        assert (len(page.chunks), page.total) == (2, len(ORDER))
