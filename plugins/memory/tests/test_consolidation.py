"""Many notes on one topic become one (RLM-F27)."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trunkline import Tool, ToolContext, ToolError
from trunkline.api.memory import Chunk, ChunkMetadata, RememberResult
from trunkline.testing.contexts import tool_context
from trunkline.testing.tool_suite import ToolSuite
from trunkline_memory.chunk_tools import recall, remember
from trunkline_memory.consolidation import consolidate, crowded_topics


async def used(tool: Tool, context: ToolContext, **arguments: Any) -> Any:
    return json.loads(await tool(context, arguments))


@pytest.mark.anyio
async def test_rlm_f27_more_than_five_notes_on_a_topic_are_merged(context: ToolContext) -> None:
    """RLM-F27: the same is said once, the newest of two that contradict each other counts, other topics stay."""
    notes = (
        "Ada likes green tea", "ada likes  green tea!", "The tea tin is red", "Tea is drunk at four",
        "Buy tea on Fridays", "Ada does not like green tea",
    )  # fmt: skip
    for number, note in enumerate(notes):
        await used(remember, context, content=note, tags=["Tea"])
        reported = await used(crowded_topics, context)
        assert reported == ([{"topic": "tea", "notes": 6}] if number == 5 else [])
    await used(remember, context, content="Coffee is brown", tags=["coffee"])
    done = await used(consolidate, context, topic="Tea")
    assert done["notes"] == 6 and await used(crowded_topics, context) == []
    [note] = await context.memory.chunks(tags=["Tea"])
    assert note.id == done["chunk_ids"][0] and note.content.startswith("- Ada does not like green tea")
    assert note.content.count("green tea") == 1 and "The tea tin is red" in note.content
    assert {one["because"].partition(":")[0] for one in done["left_out"]} == {
        "another note says the same", "a newer note contradicts it",
    }  # fmt: skip
    assert (await used(recall, context, query="coffee"))["answer"] == "Coffee is brown"


@pytest.mark.anyio
async def test_a_topic_with_few_notes_is_unchanged(context: ToolContext) -> None:
    """Below six notes nothing is changed, and the model receives the reason."""
    await used(remember, context, content="Tea is green", tags=["tea"])
    with pytest.raises(ToolError, match="Nothing was changed") as refused:
        await used(consolidate, context, topic="tea")
    assert refused.value.kind == "not_found" and len(await context.memory.chunks(tags=["tea"])) == 1


class _Crowded:
    """A memory of six notes on tea, in this process."""

    async def chunks(self, **more: Any) -> list[Chunk]:
        return [
            Chunk(
                id=f"chunk-2026-05-04-0000000{number}",
                content=f"note {number}",
                tokens=1,
                type="note",
                tags=("tea",),
                metadata=ChunkMetadata(created_at=datetime.now(UTC), modified_at=datetime.now(UTC)),
                layer="project_global",
                path="",
            )
            for number in range(6)
        ]

    async def remember(self, content: str, **more: Any) -> RememberResult:
        return RememberResult(success=True, chunk_ids=("chunk-2026-05-04-00000009",), chunks_created=1)

    async def forget(self, chunk: str, *, reason: str = "") -> str:
        return "1" * 40


class _GardeningSuite(ToolSuite):
    def context(self, workspace: Path) -> ToolContext:
        return tool_context(workspace, memory=_Crowded())


TestCrowdedTopics = _GardeningSuite.of(crowded_topics)
TestConsolidate = _GardeningSuite.of(consolidate, topic="tea")
