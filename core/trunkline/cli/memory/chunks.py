"""``trunkline memory chunks``: lists, shows, changes, archives and restores chunks."""

from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import click

from trunkline.cli.command import Group
from trunkline.cli.memory.attached_memory import CHUNKS, COMMAND_SECONDS, with_memory
from trunkline.cli.time_type import LocalTime
from trunkline.contracts.actors import OWNER

if TYPE_CHECKING:
    from trunkline.contracts.memory.chunk import Chunk
    from trunkline.contracts.memory.files import MemoryChanged
    from trunkline_bus import Endpoint

Q = TypeVar("Q")

EXAMPLES = """
trunkline memory chunks list --tag people
trunkline memory chunks show chunk-2026-05-04-1f3a9c2b
trunkline memory chunks links chunk-2026-05-04-1f3a9c2b
trunkline memory chunks stats
"""
SHOWN = 90


def line(chunk: "Chunk") -> str:
    """Return a chunk as one line."""
    text = " ".join(chunk.content.split())
    text = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
    return f"{chunk.id}  {chunk.type:<10}  {chunk.metadata.confidence:.2f}  {text}"


def _changed(endpoint: "Endpoint[Q, MemoryChanged]", request: Q, what: str, as_json: bool) -> None:
    """Change a chunk, and print the result."""
    from trunkline.cli.output import print_json

    done = with_memory(lambda bus: bus.call(endpoint, request, timeout=COMMAND_SECONDS), hint=CHUNKS)
    if as_json:
        print_json(done)
    else:
        click.echo(f"{what} as {done.version[:10]}.")


def _found(some: bool, as_json: bool) -> int:
    """Return the exit status for a list, and print a note if it is empty."""
    if not some and not as_json:
        click.echo("There are no such chunks.", err=True)
    return 0 if some else 1


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """List, show, change, archive and restore chunks."""


@command.command("list", examples="trunkline memory chunks list --tag people --type fact --after 2026-05-01")
@click.option("--block", help="Only chunks that this block's agent would see. Default: all.")
@click.option("--tag", "tags", multiple=True, help="Only chunks with this tag; repeatable.")
@click.option("--type", "kind", help="Only chunks of this type.")
@click.option("--conversation", help="Only chunks of this conversation.")
@click.option("--after", type=LocalTime(), help="Only chunks made at or after this time (local).")
@click.option("--before", type=LocalTime(), help="Only chunks made at or before this time (local).")
@click.option("--archived", is_flag=True, help="List archived chunks instead.")
@click.option(
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="The largest number of results.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_chunks(
    block: str | None,
    tags: tuple[str, ...],
    kind: str | None,
    conversation: str | None,
    after: datetime | None,
    before: datetime | None,
    archived: bool,
    limit: int,
    as_json: bool,
) -> int:
    """List chunks, newest first. The exit status is 1 when there are none."""
    from trunkline.cli.output import print_json, print_text
    from trunkline.contracts.memory.chunks import ListChunks
    from trunkline.contracts.memory.subjects import MEMORY_CHUNKS

    request = ListChunks(
        actor=OWNER,
        block=block,
        tags=tags,
        chunk_type=kind,
        conversation_id=conversation,
        created_after=after,
        created_before=before,
        archived=archived,
        limit=limit,
    )
    page = with_memory(lambda bus: bus.call(MEMORY_CHUNKS, request, timeout=COMMAND_SECONDS))
    if as_json:
        print_json(page)
    for chunk in () if as_json else page.chunks:
        print_text(line(chunk))
    if not as_json and page.total > len(page.chunks):
        click.echo(f"{page.total - len(page.chunks)} more: see --limit.", err=True)
    return _found(bool(page.chunks), as_json)


@command.command("show", examples="trunkline memory chunks show chunk-2026-05-04-1f3a9c2b --json")
@click.argument("chunk")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(chunk: str, as_json: bool) -> int:
    """Print a chunk, archived or not. The exit status is 1 when it does not exist."""
    from trunkline.cli.output import print_json, print_text
    from trunkline.contracts.memory.chunks import GetChunk
    from trunkline.contracts.memory.subjects import MEMORY_CHUNK

    request = GetChunk(id=chunk, actor=OWNER, archived=True)
    found = with_memory(lambda bus: bus.call(MEMORY_CHUNK, request, timeout=COMMAND_SECONDS)).chunk
    if as_json:
        print_json(found)
    elif found is None:
        click.echo(f"There is no chunk {chunk}.\nHint: {CHUNKS}", err=True)
    else:
        print_text(_described(found))
    return 0 if found else 1


def _described(chunk: "Chunk") -> str:
    from trunkline._util.local_time import format_local_time

    known = chunk.metadata
    made = format_local_time(known.created_at, seconds=True)
    lines = [
        f"{chunk.id}  ({chunk.path}{', archived' if chunk.archived else ''})",
        f"{chunk.type}, confidence {known.confidence:g}, {chunk.tokens} tokens, {chunk.layer}",
        f"made {made} by {known.actor or 'somebody'}; source: {known.source}",
        f"conversation {known.conversation_id or '-'}, turn {known.turn_id or '-'}",
        f"tags: {', '.join(chunk.tags) or '-'}",
        f"looked at {chunk.access_count} times",
        "",
        chunk.content,
    ]
    return "\n".join(lines)


@command.command(
    "links", examples="trunkline memory chunks links chunk-2026-05-04-1f3a9c2b --type contradicts"
)
@click.argument("chunk")
@click.option("--type", "kind", help="Only links of this type.")
@click.option(
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="The largest number of results.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def links(chunk: str, kind: str | None, limit: int, as_json: bool) -> int:
    """Show the links of a chunk, strongest first. The exit status is 1 when it has none."""
    from trunkline.cli.output import print_json, print_text
    from trunkline.contracts.memory.chunks import FindLinked
    from trunkline.contracts.memory.subjects import MEMORY_LINKED

    request = FindLinked(id=chunk, actor=OWNER, link_type=kind, limit=limit)
    found = with_memory(
        lambda bus: bus.call(MEMORY_LINKED, request, timeout=COMMAND_SECONDS), hint=CHUNKS
    ).links
    if as_json:
        print_json(found)
    for link in () if as_json else found:
        arrow = "<-" if link.incoming else "->"
        made = "by itself" if link.automatic else "by hand"
        print_text(f"{arrow} {link.type} {link.strength:.2f} ({made})  {line(link.chunk)}")
    return _found(bool(found), as_json)


@command.command(
    "change", examples="trunkline memory chunks change chunk-2026-05-04-1f3a9c2b --confidence 0.9"
)
@click.argument("chunk")
@click.option("--text", help="The new text.")
@click.option(
    "--tag", "tags", multiple=True, help="The new tags, which replace the present ones; repeatable."
)
@click.option("--confidence", type=click.FloatRange(0, 1), help="Confidence in the text, from 0 to 1.")
@click.option("--type", "kind", help="The new type.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def change(
    chunk: str,
    text: str | None,
    tags: tuple[str, ...],
    confidence: float | None,
    kind: str | None,
    as_json: bool,
) -> None:
    """Change the given fields of a chunk."""
    from trunkline.contracts.memory.chunks import UpdateChunk
    from trunkline.contracts.memory.subjects import MEMORY_UPDATE_CHUNK

    request = UpdateChunk(
        id=chunk, actor=OWNER, content=text, tags=tags or None, confidence=confidence, chunk_type=kind
    )
    _changed(MEMORY_UPDATE_CHUNK, request, f"Changed {chunk}", as_json)


@command.command("delete", examples="trunkline memory chunks delete chunk-2026-05-04-1f3a9c2b")
@click.argument("chunk")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def delete(chunk: str, as_json: bool) -> None:
    """Archive a chunk. Searches no longer find it; "restore" brings it back."""
    from trunkline.contracts.memory.chunks import DeleteChunk
    from trunkline.contracts.memory.subjects import MEMORY_DELETE_CHUNK

    request = DeleteChunk(id=chunk, actor=OWNER)
    _changed(MEMORY_DELETE_CHUNK, request, f"Archived {chunk}", as_json)


@command.command("restore", examples="trunkline memory chunks restore chunk-2026-05-04-1f3a9c2b")
@click.argument("chunk")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def restore(chunk: str, as_json: bool) -> None:
    """Restore a chunk from the archive."""
    from trunkline.contracts.memory.chunks import RestoreChunk
    from trunkline.contracts.memory.subjects import MEMORY_RESTORE_CHUNK

    request = RestoreChunk(id=chunk, actor=OWNER)
    _changed(MEMORY_RESTORE_CHUNK, request, f"Restored {chunk}", as_json)


@command.command("prune", examples="trunkline memory chunks prune --block garden --days 90 --dry-run")
@click.option("--block", help="The chunks of this block. Default: the owner's own.")
@click.option(
    "--days",
    type=click.IntRange(min=1),
    help="Archive chunks that were neither made nor used for this many days. Default: the retention policy's.",
)
@click.option("--dry-run", is_flag=True, help="Only report what would be archived.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def prune(block: str | None, days: int | None, dry_run: bool, as_json: bool) -> None:
    """Archive expired and old chunks."""
    from trunkline.cli.output import print_json
    from trunkline.contracts.memory.chunks import PruneChunks
    from trunkline.contracts.memory.subjects import MEMORY_PRUNE

    request = PruneChunks(actor=OWNER, block=block, days=days, dry_run=dry_run)
    done = with_memory(lambda bus: bus.call(MEMORY_PRUNE, request, timeout=600.0))
    if as_json:
        print_json(done)
        return
    for chunk in done.chunk_ids:
        click.echo(chunk)
    click.echo(f"{'Would archive' if dry_run else 'Archived'} {len(done.chunk_ids)}.", err=True)


@command.command("stats", examples="trunkline memory chunks stats --json")
@click.option("--block", help="Only chunks that this block's agent shares. Default: all.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def stats(block: str | None, as_json: bool) -> int:
    """Count chunks, and report damaged chunk files. The exit status is 1 when there are damaged ones."""
    from trunkline.cli.output import print_json, print_table
    from trunkline.contracts.memory.chunks import CountChunks
    from trunkline.contracts.memory.subjects import MEMORY_CHUNK_STATS

    found = with_memory(
        lambda bus: bus.call(MEMORY_CHUNK_STATS, CountChunks(block=block), timeout=COMMAND_SECONDS)
    )
    if as_json:
        print_json(found)
        return 1 if found.broken else 0
    rows = [("chunks", found.total_chunks), ("archived", found.archived_chunks), ("tokens", found.tokens)]
    rows += [("tags", found.tags), ("links by hand", found.links)]
    rows += [*sorted(found.by_type.items()), *sorted(found.by_layer.items())]
    print_table([(name, str(number)) for name, number in rows])
    for one in found.broken:
        click.echo(f"Broken ({one.code}): {one.path}", err=True)
    return 1 if found.broken else 0
