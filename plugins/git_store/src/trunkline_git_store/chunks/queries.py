"""Questions about chunks to the index: one by its id, many by what is known of them, how many. Changes nothing."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import apsw
import msgspec

from trunkline.api.chunks import (
    LAYERS,
    BrokenChunk,
    ChunkCounts,
    ChunkFile,
    ChunkLocation,
    ChunkPage,
    ChunkVisibility,
    LayerLocation,
    decode_chunk,
    layer_of,
)
from trunkline.api.memory import Chunk, ListChunks
from trunkline_git_store.index.passage import to_micros

BlobReader = Callable[[str], bytes]
"""The bytes of a blob, by its id."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_FROM = "FROM chunks JOIN passages ON passages.id = chunks.passage JOIN files ON files.id = passages.file"
INDEXED_CHUNK_COLUMNS = (
    "chunks.passage, files.path, files.blob, chunks.place, chunks.archived, chunks.id, chunks.at,"
    " chunks.conversation"
)
"""The columns of a row."""


class IndexedChunk(ChunkLocation, frozen=True, kw_only=True):
    """A chunk as the index knows it."""

    passage: int
    blob: str
    archived: bool
    at: int
    conversation: str


def to_indexed_chunk(row: tuple[Any, ...]) -> IndexedChunk:
    """A row of the columns ``INDEXED_CHUNK_COLUMNS``."""
    passage, path, blob, place, archived, chunk, at, conversation = row
    return IndexedChunk(
        chunk,
        path,
        place,
        passage=passage,
        blob=blob,
        archived=bool(archived),
        at=at,
        conversation=conversation,
    )


def visible_condition(visible: ChunkVisibility, *, archived: bool = False) -> tuple[str, list[str | int]]:
    """Chunks of the visible folders that are whole and have not expired. (+ keeps SQLite from beginning with the
    folders: of these there are few, with very many chunks in each.)"""
    marks = ", ".join("?" for _ in visible.folders)
    where = (
        f"+chunks.place IN ({marks}) AND +chunks.archived = ? AND +chunks.fault = ''"
        " AND (chunks.expires = 0 OR chunks.expires > ?)"
    )
    return where, [*visible.folders, int(archived), to_micros(visible.now)]


def find_rows(
    connection: apsw.Connection,
    sight: ChunkVisibility,
    more: str,
    values: Iterable[str | float],
    *,
    archived: bool = False,
) -> list[IndexedChunk]:
    """The chunks that an asker may see for which ``more`` holds; ``more`` may end in an order and a limit."""
    where, seen = visible_condition(sight, archived=archived)
    found = connection.execute(
        f"SELECT {INDEXED_CHUNK_COLUMNS} {_FROM} WHERE {where} AND {more}", (*seen, *values)
    )
    return [to_indexed_chunk(row) for row in found]


def find_chunk(
    connection: apsw.Connection, sight: ChunkVisibility, chunk: str, *, archived: bool = False
) -> IndexedChunk | None:
    """A chunk by its id; of several, the one whose layer counts first."""
    found = find_rows(connection, sight, "chunks.id = ?", (chunk,), archived=archived)
    return min(found, key=lambda row: sight.rank(row.place), default=None)


def deduplicate(chunks: Iterable[IndexedChunk], sight: ChunkVisibility) -> Iterator[IndexedChunk]:
    """Each id once, from the layer that counts first, in the order given."""
    held = list(chunks)
    best: dict[str, int] = {}
    for row in held:
        best[row.id] = min(best.get(row.id, len(sight.folders)), sight.rank(row.place))
    for row in held:
        if best.get(row.id) == sight.rank(row.place):
            del best[row.id]
            yield row


def list_page(
    connection: apsw.Connection, contents: BlobReader, sight: ChunkVisibility, request: ListChunks
) -> ChunkPage:
    """The chunks that match, newest first."""
    more, values = _filters(request)
    where, seen = visible_condition(sight, archived=request.archived)
    total = connection.execute(
        f"SELECT count(DISTINCT chunks.id) FROM chunks WHERE {where} AND {more}", (*seen, *values)
    ).get
    order = " ORDER BY chunks.at DESC, chunks.id DESC LIMIT ? OFFSET ?"
    found = find_rows(
        connection, sight, more + order, (*values, request.limit, request.offset), archived=request.archived
    )
    seen_once = deduplicate(found, sight)
    return ChunkPage(chunks=tuple(load_chunks(connection, contents, seen_once)), total=total)


def _filters(request: ListChunks) -> tuple[str, list[str | int]]:
    parts, values = ["1"], list[str | int]()
    for tag in dict.fromkeys(tag.casefold() for tag in request.tags):
        parts.append("chunks.passage IN (SELECT passage FROM tags WHERE tag = ?)")
        values.append(tag)
    for column, wanted in (("type", request.chunk_type), ("conversation", request.conversation_id)):
        if wanted is not None:
            parts.append(f"chunks.{column} = ?")
            values.append(wanted)
    for sign, when in ((">=", request.created_after), ("<=", request.created_before)):
        if when is not None:
            parts.append(f"chunks.at {sign} ?")
            values.append(to_micros(when))
    return " AND ".join(parts), values


def load_chunks(
    connection: apsw.Connection, contents: BlobReader, chunks: Iterable[IndexedChunk]
) -> Iterator[Chunk]:
    """The chunks of some rows, read from their files."""
    for row in chunks:
        file = decode_chunk(row.path, contents(row.blob))
        if isinstance(file, ChunkFile):
            yield _chunk(connection, row, file)


def _chunk(connection: apsw.Connection, row: IndexedChunk, file: ChunkFile) -> Chunk:
    used = connection.execute("SELECT at, count FROM uses WHERE chunk = ?", (row.id,)).fetchone()
    return Chunk(
        **msgspec.structs.asdict(file),
        layer=layer_of(row.place),
        path=row.path,
        archived=row.archived,
        accessed_at=from_micros(used[0]) if used else None,
        access_count=used[1] if used else 0,
    )


def note_use(connection: apsw.Connection, ids: Iterable[str], now: datetime) -> None:
    """Count that somebody looked at chunks."""
    connection.executemany(
        "INSERT INTO uses VALUES(?, ?, 1) ON CONFLICT(chunk) DO UPDATE SET at = excluded.at, count = count + 1",
        [(chunk, to_micros(now)) for chunk in ids],
    )


def all_locations(connection: apsw.Connection) -> tuple[LayerLocation, ...]:
    """All places that hold chunks, those that count first in front: what the owner sees."""
    found = connection.execute("SELECT DISTINCT place FROM chunks")
    places = [LayerLocation(layer_of(folder), folder) for (folder,) in found]
    return tuple(sorted(places, key=lambda place: (LAYERS.index(place.layer), place.folder)))


def stale_chunks(
    connection: apsw.Connection, folder: str, now: datetime, days: int | None
) -> list[IndexedChunk]:
    """The chunks of a block, or ("") of the owner, agents' private ones too, that have expired, or that were neither
    made nor changed nor used for so many days."""
    at = to_micros(now)
    oldest = at - days * 86_400 * 1_000_000 if days is not None else -(2**62)
    found = connection.execute(
        f"SELECT {INDEXED_CHUNK_COLUMNS} {_FROM} LEFT JOIN uses ON uses.chunk = chunks.id"
        " WHERE (chunks.place = ? OR chunks.place GLOB ?) AND chunks.archived = 0 AND chunks.fault = ''"
        " AND (chunks.expires BETWEEN 1 AND ? OR max(chunks.at, chunks.modified, coalesce(uses.at, 0)) < ?)"
        " ORDER BY chunks.at, chunks.id",
        (folder, f"{folder}/agents/*" if folder else "agents/*", at, oldest),
    )
    return [to_indexed_chunk(row) for row in found]


def count_chunks(connection: apsw.Connection, folders: Iterable[str] | None) -> ChunkCounts:
    """Return the numbers of chunks in some folders, or everywhere."""
    kept = None if folders is None else tuple(folders)
    where = "1" if kept is None else f"chunks.place IN ({', '.join('?' for _ in kept)})"
    live = f"{where} AND chunks.fault = '' AND chunks.archived = 0"

    def ask(what: str, condition: str) -> list[tuple[object, ...]]:
        return list(connection.execute(f"SELECT {what} WHERE {condition}", kept or ()))

    by_place = ask("chunks.place, count(*) FROM chunks", f"{live} GROUP BY chunks.place")
    by_layer: dict[str, int] = {}
    for folder, number in by_place:
        layer = layer_of(str(folder))
        by_layer[layer] = by_layer.get(layer, 0) + int(str(number))
    return ChunkCounts(
        total_chunks=sum(by_layer.values()),
        archived_chunks=int(str(ask("count(*) FROM chunks", f"{where} AND chunks.archived = 1")[0][0])),
        tokens=int(str(ask("coalesce(sum(tokens), 0) FROM chunks", live)[0][0])),
        tags=int(str(ask("count(DISTINCT tag) FROM tags JOIN chunks USING(passage)", live)[0][0])),
        links=int(str(ask("count(*) FROM links JOIN chunks USING(passage)", live)[0][0])),
        by_type={
            str(kind): int(str(n)) for kind, n in ask("type, count(*) FROM chunks", f"{live} GROUP BY type")
        },
        by_layer=by_layer,
        broken=tuple(
            BrokenChunk(path=str(path), code=str(code))
            for path, code in ask(f"files.path, chunks.fault {_FROM}", f"{where} AND chunks.fault != ''")
        ),
    )


def from_micros(value: int) -> datetime:
    """The time of so many microseconds since 1970, in UTC."""
    return _EPOCH + timedelta(microseconds=value)
