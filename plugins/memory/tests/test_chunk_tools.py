"""The chunk tools on a real memory worker, and each of them against the contract of tools (RLM-F9 to F12, T7)."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trunkline import Tool, ToolContext, ToolError
from trunkline.api.memory import Chunk, ChunkMetadata, RecallResult, RememberResult
from trunkline.testing.contexts import tool_context
from trunkline.testing.tool_suite import ToolSuite
from trunkline_memory.chunk_tools import forget, link, reason, recall, remember


async def used(tool: Tool, context: ToolContext, **arguments: Any) -> Any:
    return json.loads(await tool(context, arguments))


async def kept(context: ToolContext, content: str, **more: Any) -> str:
    """Remember one chunk; returns its id."""
    (chunk,) = (await used(remember, context, content=content, **more))["chunk_ids"]
    return str(chunk)


@pytest.mark.anyio
async def test_a_remembered_chunk_is_recalled(context: ToolContext) -> None:
    """RLM-F9, F10: the chunk is returned with its origin; a blank text is an error for the model."""
    chunk = await kept(context, "User prefers dark mode", tags=["ui"], confidence=0.9)
    found = await used(recall, context, query="dark mode")
    assert found["answer"] == "User prefers dark mode"
    assert found["source_chunks"] == [chunk]
    (one,) = found["chunks"]
    assert "Words alone" in found["searched"]
    assert (one["type"], one["tags"], one["conversation_id"]) == ("preference", ["ui"], "conv_test")
    with pytest.raises(ToolError, match="blank"):
        await used(remember, context, content="  ")
    with pytest.raises(ToolError, match="opinion"):
        await used(remember, context, content="x", chunk_type="opinion")


@pytest.mark.anyio
async def test_rlm_t7_a_negation_is_a_conflict(context: ToolContext) -> None:
    """RLM-T7: "likes tabs" against "does not like tabs" is reported; the same said twice counts once."""
    likes = await kept(context, "Ada likes tabs", confidence=0.9)
    again = await kept(context, "ada  likes tabs!")
    not_so = await kept(context, "Ada does not like tabs")
    reported = await used(reason, context, query="tabs")
    (conflict,) = reported["contradictions"]
    assert conflict["kind"] == "negation_conflict"
    assert set(conflict["chunks"]) == {likes, not_so}
    assert set(reported["source_chunks"]) == {likes, not_so}
    assert again not in reported["source_chunks"]
    assert reported["source_chunks"][0] == likes
    assert 0 < reported["confidence"] < 0.9
    assert len(reported["insights"]) <= 5


@pytest.mark.anyio
async def test_rlm_t7_a_comparison_needs_two_distinct_chunks(context: ToolContext) -> None:
    """RLM-T7: it needs two chunks that say different things."""
    one = await kept(context, "Ada likes tabs")
    twice = await kept(context, "Ada likes tabs")
    for ids in ([one], [one, twice]):
        with pytest.raises(ToolError, match="two chunks"):
            await used(reason, context, query="tabs", analysis_type="comparison", context_chunks=ids)
    other = await kept(context, "Bob likes spaces and tabs")
    reported = await used(
        reason, context, query="tabs", analysis_type="comparison", context_chunks=[one, other]
    )
    assert any("space" in insight for insight in reported["insights"])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("User prefers dark mode", "User prefers light mode", "potential_preference_conflict"),
        ("Ada likes tabs", "Ada hates tabs", "potential_preference_conflict"),
        ("The server is in Berlin", "The server isn't in Berlin", "negation_conflict"),
        ("User prefers dark mode", "The shed is not green", None),
        ("Ada likes tabs", "Bob moved the beans", None),
    ],
)
async def test_possible_contradictions_are_named(
    context: ToolContext, one: str, other: str, kind: str | None
) -> None:
    """RLM-F11: by negation, by liking and disliking, by two that cannot both be preferred; and nothing else."""
    ids = [await kept(context, one), await kept(context, other)]
    reported = await used(reason, context, query="x", context_chunks=ids)
    assert [conflict["kind"] for conflict in reported["contradictions"]] == ([kind] if kind else [])


@pytest.mark.anyio
async def test_an_explicit_link_counts_as_certain(context: ToolContext) -> None:
    """RLM-F11: a chunk linked as contradicting is named, for any words; without the link it is not."""
    one, other = await kept(context, "The beans are early"), await kept(context, "Frost came in May")
    arguments = {"source_id": one, "target_id": other, "link_type": "contradicts"}
    await used(link, context, **arguments)
    reported = await used(reason, context, query="x", context_chunks=[other, one])
    assert [conflict["kind"] for conflict in reported["contradictions"]] == ["explicit"]
    await used(link, context, **arguments, remove=True)
    reported = await used(reason, context, query="x", context_chunks=[other, one])
    assert reported["contradictions"] == []


@pytest.mark.anyio
async def test_patterns_and_gaps(context: ToolContext) -> None:
    """RLM-F11: recurring topics, and topics without a chunk."""
    for text in ("The beans need water", "The beans need sun", "Pears need pruning"):
        await kept(context, text, tags=["garden"])
    reported = await used(reason, context, query="garden", analysis_type="pattern")
    assert "tag garden in 3 of 3 chunks" in reported["insights"]
    reported = await used(reason, context, query="beans fertiliser", analysis_type="gap")
    assert reported["synthesis"] == "No chunk mentions: fertiliser."
    reported = await used(reason, context, query="submarines")
    assert (reported["source_chunks"], reported["confidence"]) == ([], 0)


@pytest.mark.anyio
async def test_a_forgotten_chunk_is_not_recalled(context: ToolContext) -> None:
    """RLM-F12: a forgotten chunk is gone for the agent."""
    chunk = await kept(context, "The zebra is striped")
    await used(forget, context, chunk_id=chunk)
    assert (await used(recall, context, query="zebra"))["chunks"] == []
    with pytest.raises(ToolError, match=chunk):
        await used(forget, context, chunk_id=chunk)
    with pytest.raises(ToolError, match=chunk):
        await used(reason, context, query="x", context_chunks=[chunk])


class _FakeMemory:
    """A memory of one chunk, in this process."""

    chunk_stored = Chunk(
        id="chunk-2026-05-04-00000000",
        content="one",
        tokens=1,
        type="note",
        metadata=ChunkMetadata(created_at=datetime.now(UTC), modified_at=datetime.now(UTC)),
        layer="project_global",
        path="",
    )

    async def remember(self, content: str, **more: Any) -> RememberResult:
        return RememberResult(success=True, chunk_ids=("chunk-2026-05-04-00000000",), chunks_created=1)

    async def recall(self, query: str, **more: Any) -> RecallResult:
        return RecallResult()

    async def chunk(self, chunk: str, **more: Any) -> Chunk:
        return self.chunk_stored

    async def linked(self, chunk: str, link_type: str | None = None, **more: Any) -> Any:
        return ()

    async def link(self, source: str, target: str, link_type: str, **more: Any) -> str:
        return "1" * 40

    async def forget(self, chunk: str, *, reason: str = "") -> str:
        return "1" * 40


class _ChunkSuite(ToolSuite):
    def context(self, workspace: Path) -> ToolContext:
        return tool_context(workspace, memory=_FakeMemory())


TestRemember = _ChunkSuite.of(remember, content="x", tags=["a"])
TestRecall = _ChunkSuite.of(recall, query="x", max_results=3)
TestReason = _ChunkSuite.of(reason, query="x", context_chunks=["chunk-2026-05-04-00000000"])
TestForget = _ChunkSuite.of(forget, chunk_id="chunk-2026-05-04-00000000")
TestLink = _ChunkSuite.of(link, source_id="a", target_id="b", link_type="supports")
