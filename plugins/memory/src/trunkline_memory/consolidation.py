"""Gardening: many notes on one topic become one, and the newest counts: ``crowded_topics``, ``consolidate``.

A topic is a tag. What the learner keeps stays as it is: each of its facts names the turn and the person it is from.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trunkline import ToolContext, ToolError, tool
from trunkline.api.memory import Chunk
from trunkline_memory.chunk_analysis import distinct, find_contradictions

CROWDED_TOPIC_SIZE = 5
"""More notes than these on a topic are too many."""

MAX_NOTES = 1_000
LEARNED = "learned"


@tool(effect="read", untrusted_output=True, derived=True)
async def crowded_topics(context: ToolContext) -> list[dict[str, Any]]:
    """List the topics, by tag, on which more than five notes are remembered; consolidate merges the notes of one
    topic."""
    found = _by_topic(await context.memory.chunks(limit=MAX_NOTES))
    crowded = [(tag, len(notes)) for tag, notes in found.items() if len(notes) > CROWDED_TOPIC_SIZE]
    return [
        {"topic": tag, "notes": count} for tag, count in sorted(crowded, key=lambda one: (-one[1], one[0]))
    ]


@tool(effect="write", derived=True)
async def consolidate(context: ToolContext, topic: str) -> dict[str, Any]:
    """Merge all that is remembered on a topic into one note. Repetitions are dropped, and of two notes that contradict
    each other the newer one stays. History keeps the old ones.

    Args:
        topic: A tag, as crowded_topics lists it.
    """
    notes = _by_topic(await context.memory.chunks(tags=[topic], limit=MAX_NOTES)).get(topic.casefold(), [])
    if len(notes) <= CROWDED_TOPIC_SIZE:
        raise ToolError(
            f"There are {len(notes)} notes on {topic!r}; more than {CROWDED_TOPIC_SIZE} are consolidated. "
            "Nothing was changed.",
            kind="not_found",
        )
    kept, dropped = _partition_notes(notes)
    newest = kept[0]
    made = await context.memory.remember(
        "\n".join(f"- {' '.join(one.content.split())}" for one in kept),
        tags=tuple(dict.fromkeys(tag for one in kept for tag in one.tags)),
        confidence=newest.metadata.confidence,
        chunk_type="note",
    )
    if not made.success:
        raise ToolError(made.error or "Nothing was kept.", kind="failed")
    for one in notes:  # only now: a stop in between leaves a note twice, and none lost
        await context.memory.forget(one.id, reason=f"Consolidated into {made.chunk_ids[0]}")
    return {
        "chunk_ids": made.chunk_ids,
        "notes": len(notes),
        "left_out": [{"content": one.content, "because": why} for one, why in dropped],
    }


def _by_topic(chunks: Iterable[Chunk]) -> Mapping[str, list[Chunk]]:
    """The notes of each tag, the newest first."""
    found: dict[str, list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        if chunk.metadata.source != LEARNED:
            for tag in {tag.casefold() for tag in chunk.tags}:
                found[tag].append(chunk)
    return {tag: sorted(notes, key=_newest_first) for tag, notes in found.items()}


def _partition_notes(notes: Sequence[Chunk]) -> tuple[list[Chunk], list[tuple[Chunk, str]]]:
    """The notes that stay, the newest first, and the others with the reason."""
    different = {one.id for one in distinct(notes)}
    against = [frozenset(one.chunks) for one in find_contradictions(notes, ())]
    kept: list[Chunk] = []
    dropped: list[tuple[Chunk, str]] = []
    for one in notes:
        if one.id not in different:
            dropped.append((one, "another note says the same"))
        elif newer := next((it for it in kept if frozenset((it.id, one.id)) in against), None):
            dropped.append((one, f"a newer note contradicts it: {newer.content}"))
        else:
            kept.append(one)
    return kept, dropped


def _newest_first(chunk: Chunk) -> tuple[float, str]:
    return -chunk.metadata.created_at.timestamp(), chunk.id
