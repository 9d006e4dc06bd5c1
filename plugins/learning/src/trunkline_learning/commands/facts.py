"""``trunkline learning facts``: what was said, by whom and when, and what contradicts it."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from trunkline.api.cli import COMMAND_SECONDS, Command, LocalTime, with_memory
from trunkline.api.memory import OWNER

if TYPE_CHECKING:
    from trunkline.api.bus import Bus
    from trunkline.api.memory import Chunk
    from trunkline_learning.facts import Fact


@dataclass(frozen=True, slots=True)
class FactFilter:
    """The facts to show."""

    query: str
    tags: tuple[str, ...]
    conversation: str | None
    since: datetime | None
    before: datetime | None
    limit: int

    def covers(self, at: datetime) -> bool:
        """Report whether a time is within the bounds."""
        return (self.since is None or at >= self.since) and (self.before is None or at < self.before)


EXAMPLES = """
trunkline learning facts
trunkline learning facts "where do I live" --role user
trunkline learning facts --conversation conv_01J… --since 2026-05-01 --json
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("query", default="")
@click.option("--block", help="Only items of this block.")
@click.option("--conversation", help="Only facts of this conversation.")
@click.option(
    "--role", type=click.Choice(["user", "assistant"]), help="Only facts stated by a person or by the agent."
)
@click.option("--since", type=LocalTime(), help="Only facts since this time (local).")
@click.option("--until", "before", type=LocalTime(), help="Only facts before this time (local).")
@click.option(
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="The largest number of results.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    query: str,
    block: str | None,
    conversation: str | None,
    role: str | None,
    since: datetime | None,
    before: datetime | None,
    limit: int,
    as_json: bool,
) -> int:
    """Show the facts that people stated about themselves, newest first; with QUERY, the best match first.

    Of two contradicting facts, each is shown with the other. The exit status is 1 when there is none.
    """
    from trunkline.api.cli import print_json, print_text
    from trunkline.api.text import format_local_time

    tags = ("learned", f"said-by-{role}") if role else ("learned",)
    wanted = FactFilter(query, tags, conversation, since, before, limit)
    found = with_memory(lambda bus: _find(bus, block, wanted))
    if as_json:
        print_json(found)
    elif not found:
        click.echo("No learned fact matches.", err=True)
    for one in () if as_json else found:
        print_text(f"{format_local_time(one['said_at'])}  {one['type']:<10}  {one['text']}")
        print_text(f"{'':24}{one['id']} · {one['block']} · {one['conversation']} · {one['role']}")
        for other in one["contradicts"]:
            print_text(f"{'':24}contradicts {other['id']}: {other['text']}")
    return 0 if found else 1


async def _find(bus: "Bus", block: str | None, filters: FactFilter) -> list[dict[str, Any]]:
    from trunkline_learning.fact_chunks import blocks_of, fact_of

    rows: list[dict[str, Any]] = []
    for name in [block] if block else await blocks_of(bus):
        for chunk in await _chunks(bus, name, filters):
            fact = fact_of(chunk, name)
            if fact is not None:
                rows.append(_to_row(fact, await _contradicting_facts(bus, name, chunk.id)))
    return (rows if filters.query else sorted(rows, key=_when, reverse=True))[: filters.limit]


def _when(row: dict[str, Any]) -> datetime:
    when: datetime = row["said_at"]
    return when


def _to_row(fact: "Fact", contradicts: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "id": fact.id,
        "text": fact.text,
        "type": fact.type,
        "role": fact.role,
        "person": fact.source.person or "owner",
        "said_at": fact.said_at,
        "block": fact.source.block,
        "conversation": fact.source.conversation,
        "turn": fact.source.turn,
        "message": fact.source.message,
        "confidence": fact.confidence,
        "found_by": fact.by,
        "contradicts": contradicts,
    }


async def _chunks(bus: "Bus", block: str, filters: FactFilter) -> "list[Chunk]":
    from trunkline.api.memory import MEMORY_CHUNKS, MEMORY_RECALL, ListChunks, Recall

    if not filters.query:
        request = ListChunks(
            actor=OWNER,
            block=block,
            tags=filters.tags,
            conversation_id=filters.conversation,
            created_after=filters.since,
            created_before=filters.before,
            limit=filters.limit,
        )
        return list((await bus.call(MEMORY_CHUNKS, request, timeout=COMMAND_SECONDS)).chunks)
    question = Recall(
        query=filters.query,
        actor=OWNER,
        block=block,
        tags=filters.tags,
        conversation_id=filters.conversation,
        max_results=filters.limit,
        min_confidence=0.0,
    )
    found = (await bus.call(MEMORY_RECALL, question, timeout=COMMAND_SECONDS)).chunks
    return [one.chunk for one in found if filters.covers(one.chunk.metadata.created_at)]


async def _contradicting_facts(bus: "Bus", block: str, id: str) -> list[dict[str, str]]:
    from trunkline.api.memory import MEMORY_LINKED, FindLinked
    from trunkline_learning.fact_chunks import CONTRADICTS

    request = FindLinked(id=id, actor=OWNER, block=block, link_type=CONTRADICTS)
    links = (await bus.call(MEMORY_LINKED, request, timeout=COMMAND_SECONDS)).links
    others = {link.chunk.id: link.chunk.content for link in links}
    return [{"id": other, "text": text} for other, text in others.items()]
