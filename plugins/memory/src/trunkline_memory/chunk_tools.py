"""Chunks as tools: ``remember``, ``recall``, ``reason``, ``forget``, ``link``."""

from typing import Annotated, Any

from msgspec import Meta

from trunkline import ToolContext, ToolError, tool
from trunkline.api.memory import DEFAULT_CONFIDENCE, Chunk
from trunkline_memory.chunk_analysis import Analysis, analyze

Limit = Annotated[int, Meta(ge=1, le=50)]
Share = Annotated[float, Meta(ge=0, le=1)]

MAX_ANALYZED = 12
"""Chunks that ``reason`` looks at when it is given none."""


@tool(effect="write", always_send=True)
async def remember(
    context: ToolContext,
    content: str,
    tags: list[str] | None = None,
    confidence: Share = DEFAULT_CONFIDENCE,
    chunk_type: str | None = None,
    fields: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Keep something that will matter later, for every conversation of this block: a fact, preference or decision.

    Args:
        content: What to keep, in words that make sense on their own.
        tags: A few words to find it by.
        confidence: How sure it is, 0 to 1.
        chunk_type: fact, preference, pattern, note or decision; left out, it follows from the words.
        fields: The fields of a custom type.
    """
    kept = await context.memory.remember(
        content, tags=tags or (), confidence=confidence, chunk_type=chunk_type, fields=fields
    )
    if not kept.success:
        raise ToolError(kept.error or "Nothing was kept.", kind="invalid_arguments")
    return {
        "chunk_ids": kept.chunk_ids,
        "chunks_created": kept.chunks_created,
        "total_tokens": kept.total_tokens,
    }


@tool(effect="read", untrusted_output=True, derived=True)
async def recall(
    context: ToolContext,
    query: str,
    max_results: Limit = 5,
    min_confidence: Share = 0.5,
    tags: list[str] | None = None,
    conversation_id: str | None = None,
) -> dict[str, Any]:
    """Search the chunks, best first.

    Args:
        query: What to look for, in a few words.
        max_results: How many at most.
        min_confidence: Only results of at least this confidence, from 0 to 1.
        tags: Only what has all of these tags.
        conversation_id: Only what comes from this conversation.
    """
    found = await context.memory.recall(
        query,
        limit=max_results,
        min_confidence=min_confidence,
        tags=tags or (),
        conversation=conversation_id,
    )
    return {
        "answer": found.answer,
        "confidence": found.confidence,
        "source_chunks": found.source_chunks,
        "traversal_path": found.traversal_path,
        "chunks": [
            _format_chunk(one.chunk) | {"score": one.score, "why": one.why, "times": one.factors}
            for one in found.chunks
        ],
        "searched": found.searched,
    }


@tool(effect="read", untrusted_output=True, derived=True)
async def reason(
    context: ToolContext,
    query: str,
    analysis_type: Analysis = "synthesis",
    context_chunks: list[str] | None = None,
) -> dict[str, Any]:
    """Analyse remembered chunks: what they say together, what recurs, what is missing, and where they disagree.

    Args:
        query: What it is about.
        analysis_type: synthesis, comparison (two different chunks at least), pattern, or gap.
        context_chunks: The ids of the chunks to analyse; left out, those that the query finds.
    """
    if context_chunks is None:
        found = await context.memory.recall(query, limit=MAX_ANALYZED, min_confidence=0.0)
        chunks = [one.chunk for one in found.chunks]
    else:
        chunks = [await _chunk(context, one) for one in context_chunks]
    against = [
        (chunk.id, link.chunk.id)
        for chunk in chunks
        for link in await context.memory.linked(chunk.id, "contradicts")
    ]
    try:
        return analyze(query, chunks, against, analysis_type).to_tool_result()
    except ValueError as error:
        raise ToolError(str(error), kind="invalid_arguments") from error


@tool(effect="write")
async def forget(context: ToolContext, chunk_id: str, reason: str = "") -> dict[str, Any]:
    """Forget a chunk, so that nobody recalls it any more. The owner can still find it in memory's history.

    Args:
        chunk_id: Its id, from remember or recall.
        reason: The reason, for the history.
    """
    return {"chunk_id": chunk_id, "hash": await context.memory.forget(chunk_id, reason=reason)}


@tool(effect="write")
async def link(
    context: ToolContext,
    source_id: str,
    target_id: str,
    link_type: str,
    strength: Share = 1.0,
    remove: bool = False,
) -> dict[str, Any]:
    """Link one chunk to another, such as supports or contradicts, or remove such a link.

    Args:
        source_id: The chunk that the link starts from.
        target_id: The chunk that it points to.
        link_type: supports, contradicts, or a type that a plugin adds.
        strength: How strongly, from 0 to 1.
        remove: Remove the link instead.
    """
    version = await context.memory.link(source_id, target_id, link_type, strength=strength, remove=remove)
    return {"source_id": source_id, "target_id": target_id, "type": link_type, "hash": version}


async def _chunk(context: ToolContext, chunk: str) -> Chunk:
    found = await context.memory.chunk(chunk)
    if found is None:
        raise ToolError(f"There is no chunk {chunk!r} here.", kind="not_found")
    return found


def _format_chunk(chunk: Chunk) -> dict[str, Any]:
    return {
        "id": chunk.id,
        "content": chunk.content,
        "type": chunk.type,
        "tags": chunk.tags,
        "confidence": chunk.metadata.confidence,
        "created_at": chunk.metadata.created_at,
        "conversation_id": chunk.metadata.conversation_id,
    }
