"""Looking up what was learned: ``known_facts``, ``playbook_strategies``. They change nothing and ask no model."""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta

from trunkline import ToolContext, ToolError, tool
from trunkline.api.memory import Chunk, utc_now
from trunkline.api.text import local_to_utc
from trunkline_learning import files, strategy_selection
from trunkline_learning.fact_chunks import CONTRADICTS, LEARNED, fact_of
from trunkline_learning.playbook import Strategy
from trunkline_learning.turns import person_behind

Limit = Annotated[int, Meta(ge=1, le=100)]


@tool(effect="read", untrusted_output=True, derived=True)
async def known_facts(
    context: ToolContext,
    query: str = "",
    conversation: str = "",
    role: Literal["", "user", "assistant"] = "",
    since: str = "",
    until: str = "",
    limit: Limit = 20,
) -> list[dict[str, Any]]:
    """Look up facts, preferences and decisions that were learned from earlier conversations, with their source.

    A contradicted fact is listed with its contradictions; ask the person when it matters which one is right.

    Args:
        query: What it is about; empty lists the newest.
        conversation: Only from this conversation, by its id.
        role: Only what the person (user) or the agent (assistant) said.
        since: Only from this time on, such as 2026-05-01 or 2026-05-01T12:00:00+02:00.
        until: Only before this time.
        limit: How many at most.
    """
    tags = [LEARNED, f"said-by-{role}"] if role else [LEARNED]
    after, before = _time(since, "since"), _time(until, "until")
    memory = context.memory
    if query.strip():
        found = await memory.recall(
            query, conversation=conversation or None, limit=limit, min_confidence=0.0, tags=tags
        )
        chunks = [one.chunk for one in found.chunks if _within(one.chunk, after, before)]
    else:
        chunks = list(
            await memory.chunks(
                tags=tags,
                conversation=conversation or None,
                created_after=after,
                created_before=before,
                limit=limit,
            )
        )
    mine = [chunk for chunk in chunks if _belongs_to(chunk, person_behind(context.actor))]
    return [await _format_chunk(context, chunk) for chunk in mine[:limit]]


@tool(effect="read", untrusted_output=True, derived=True)
async def playbook_strategies(context: ToolContext, task: str, limit: Limit = 10) -> str:
    """Look up strategies for a task that were learned from earlier tasks. Each has an id and how often it helped or
    harmed.

    Args:
        task: What is to be done, in a sentence.
        limit: How many at most.
    """
    hits = (await context.memory.search(task, path=f"/{files.MODELS}", limit=100)).hits
    paths = [path for path in dict.fromkeys(hit.path for hit in hits) if files.is_strategy(path)]
    read = [
        (path, files.decode((await context.memory.read(path)).content, Strategy))
        for path in paths[: 3 * limit]
    ]
    place = context.block, person_behind(context.actor)
    known = [
        (files.model_folder_in(path), one) for path, one in read if one is not None and one.is_for(place)
    ]
    chosen = strategy_selection.select_strategies(task, known, model="", now=utc_now())[:limit]
    return strategy_selection.render_strategies(chosen) or "Nothing was learned about such tasks yet."


async def _format_chunk(context: ToolContext, chunk: Chunk) -> dict[str, Any]:
    fact = fact_of(chunk, None)
    links = await context.memory.linked(chunk.id, link_type=CONTRADICTS)
    person = person_behind(context.actor)
    against = {link.chunk.id: link.chunk.content for link in links if _belongs_to(link.chunk, person)}
    return {
        "id": chunk.id,
        "text": chunk.content,
        "type": chunk.type,
        "role": fact.role if fact is not None else "",
        "said_at": fact.said_at if fact is not None else chunk.metadata.created_at,
        "conversation": chunk.metadata.conversation_id,
        "turn": chunk.metadata.turn_id,
        "contradicted_by": list(against.values()),
    }


def _belongs_to(chunk: Chunk, person: str) -> bool:
    """Report whether it is a fact of this person; facts of others who speak in the block stay with them."""
    fact = fact_of(chunk, None)
    return fact is None or fact.source.person == person


def _time(text: str, name: str) -> datetime | None:
    if not text.strip():
        return None
    try:
        return local_to_utc(datetime.fromisoformat(text.strip()))
    except ValueError as error:
        raise ToolError(
            f"{name} must be a date or time such as 2026-05-01, not {text!r}.", kind="invalid_arguments"
        ) from error


def _within(chunk: Chunk, after: datetime | None, before: datetime | None) -> bool:
    at = chunk.metadata.created_at
    return (after is None or at >= after) and (before is None or at < before)
