"""The links of a chunk. Links made by hand are in the files; the others are computed from the index
on request, so that a chunk is written once and never because of its neighbours (decision 18).

``context_of``: same conversation, strength 1. ``follows``: within five minutes, max(.3, 1 - minutes/5).
``related_to``: shared tags, min(.9, .3 + .2 each), between conversations.
"""

import json
from collections import Counter
from collections.abc import Iterator

import apsw
import msgspec

from trunkline.api.chunks import ChunksLinked, ChunkVisibility
from trunkline.api.memory import FindLinked, LinkedChunk
from trunkline_git_store.chunks.queries import (
    BlobReader,
    IndexedChunk,
    deduplicate,
    find_chunk,
    find_rows,
    from_micros,
    load_chunks,
)

FOLLOW_MICROS = 5 * 60 * 1_000_000
"""Microseconds within which one chunk follows another."""

MAX_TAG_PASSAGES = 2_000
"""Chunks of one tag, the newest, that are looked at for what they share."""

_MINUTE = 60 * 1_000_000


class ChunkLinkRow(msgspec.Struct, frozen=True):
    """A link before the chunk at its other end is read."""

    type: str
    strength: float
    row: IndexedChunk
    at: int
    incoming: bool = False
    automatic: bool = True


def linked_chunks(
    connection: apsw.Connection, contents: BlobReader, sight: ChunkVisibility, request: FindLinked
) -> ChunksLinked | None:
    """The links of a chunk, strongest first; None when there is no such chunk."""
    row = find_chunk(connection, sight, request.id)
    if row is None:
        return None
    links = _LinkFinder(connection, sight, row, request.limit).all(request.link_type)
    return ChunksLinked(
        links=tuple(
            LinkedChunk(
                type=link.type,
                strength=round(link.strength, 6),
                incoming=link.incoming,
                automatic=link.automatic,
                created_at=from_micros(link.at),
                chunk=chunk,
            )
            for link in links
            for chunk in load_chunks(connection, contents, (link.row,))
        )
    )


class _LinkFinder:
    def __init__(
        self, connection: apsw.Connection, sight: ChunkVisibility, row: IndexedChunk, limit: int
    ) -> None:
        self._connection = connection
        self._visibility = sight
        self._row = row
        self._limit = limit

    def all(self, link_type: str | None) -> list[ChunkLinkRow]:
        """Each link once, those made by hand before those that are read off."""
        found: dict[tuple[str, str, bool], ChunkLinkRow] = {}
        for link in self._every(link_type):
            if link_type in (None, link.type):
                found.setdefault((link.type, link.row.id, link.incoming), link)
        ordered = sorted(
            found.values(), key=lambda link: (-link.strength, link.automatic, -link.at, link.row.id)
        )
        return ordered[: self._limit]

    def _every(self, link_type: str | None) -> Iterator[ChunkLinkRow]:
        yield from self._manual_links()
        if link_type in (None, "context_of"):
            yield from self._context()
        if link_type in (None, "follows"):
            yield from self._near()
        if link_type in (None, "related_to"):
            yield from self._related()

    def _manual_links(self) -> Iterator[ChunkLinkRow]:
        """Links in the chunk's own file, and those in others' that point here."""
        out = self._connection.execute(
            "SELECT target, type, strength FROM links WHERE passage = ?", (self._row.passage,)
        )
        for target, kind, strength in list(out):
            other = find_chunk(self._connection, self._visibility, target)
            if other is not None and other.id != self._row.id:
                yield ChunkLinkRow(kind, strength, other, self._row.at, automatic=False)
        come = self._connection.execute(
            "SELECT passage, type, strength FROM links WHERE target = ?", (self._row.id,)
        )
        for passage, kind, strength in list(come):
            for other in find_rows(self._connection, self._visibility, "chunks.passage = ?", (passage,)):
                yield ChunkLinkRow(kind, strength, other, other.at, incoming=True, automatic=False)

    def _context(self) -> Iterator[ChunkLinkRow]:
        if not self._row.conversation:
            return
        for other in self._neighbours("chunks.conversation = ?", (self._row.conversation,)):
            yield ChunkLinkRow("context_of", 1.0, other, max(other.at, self._row.at))

    def _near(self) -> Iterator[ChunkLinkRow]:
        at = self._row.at
        for other in self._neighbours("chunks.at BETWEEN ? AND ?", (at - FOLLOW_MICROS, at + FOLLOW_MICROS)):
            apart = abs(other.at - at) / _MINUTE
            later = (other.at, other.id) > (at, self._row.id)
            yield ChunkLinkRow("follows", max(0.3, 1 - apart / 5), other, max(other.at, at), incoming=later)

    def _related(self) -> Iterator[ChunkLinkRow]:
        shared = dict(self._shared_tag_counts().most_common(4 * self._limit))
        among = "chunks.passage IN (SELECT value FROM json_each(?))"
        for other in find_rows(self._connection, self._visibility, among, (json.dumps([*shared]),)):
            same = bool(other.conversation) and other.conversation == self._row.conversation
            if not same and other.id != self._row.id:
                strength = min(0.9, 0.3 + 0.2 * shared[other.passage])
                yield ChunkLinkRow("related_to", strength, other, max(other.at, self._row.at))

    def _shared_tag_counts(self) -> Counter[int]:
        """Return the number of tags that other passages share, among the newest of each tag."""
        found: Counter[int] = Counter()
        own = self._connection.execute("SELECT tag FROM tags WHERE passage = ?", (self._row.passage,))
        for (tag,) in list(own):
            newest = self._connection.execute(
                "SELECT passage FROM tags WHERE tag = ? ORDER BY passage DESC LIMIT ?",
                (tag, MAX_TAG_PASSAGES),
            )
            found.update(passage for (passage,) in newest if passage != self._row.passage)
        return found

    def _neighbours(self, more: str, values: tuple[str | int, ...]) -> Iterator[IndexedChunk]:
        """Return the chunks created just before and just after, among all that satisfy ``more``."""
        at, few = self._row.at, self._limit + len(self._visibility.folders)
        found: list[IndexedChunk] = []
        for side in (
            "chunks.at <= ? ORDER BY chunks.at DESC, chunks.id DESC",
            "chunks.at > ? ORDER BY chunks.at, chunks.id",
        ):
            found += find_rows(
                self._connection, self._visibility, f"{more} AND {side} LIMIT ?", (*values, at, few)
            )
        found.sort(key=lambda row: (abs(row.at - at), row.id))
        return (row for row in deduplicate(found, self._visibility) if row.id != self._row.id)
