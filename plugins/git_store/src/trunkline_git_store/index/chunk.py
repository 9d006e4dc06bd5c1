"""Chunks: one JSON file each (``memory.chunks.record``). One passage, with all it knows."""

from trunkline.api.chunks import ChunkFile, ChunkPath, decode_chunk, parse_chunk_path
from trunkline_git_store.index.passage import ChunkColumns, Passage, PassageLink, to_micros
from trunkline_git_store.index.plain_text import plain_passages


def is_chunk(path: str) -> bool:
    """Report whether a path is a chunk's."""
    return parse_chunk_path(path) is not None


def chunk_passages(path: str, data: bytes) -> list[Passage]:
    """The chunk. Of an archived one nothing can be found; a file that is no chunk after all is a plain file, so that a
    person finds what is damaged in it."""
    named, chunk = parse_chunk_path(path), decode_chunk(path, data)
    if named is None:
        return plain_passages(path, data)
    if isinstance(chunk, str):
        return _broken_passage(path, data, named, chunk)
    return [_passage(named, chunk)]


def _passage(named: ChunkPath, chunk: ChunkFile) -> Passage:
    known, found = chunk.metadata, not named.archived
    return Passage(
        1,
        chunk.content if found else "",
        kind=("fact" if chunk.type == "fact" else "chunk") if found else "archived",
        name=chunk.id,
        at=to_micros(known.created_at),
        confidence=known.confidence,
        conversation=known.conversation_id or "",
        tags=tuple(dict.fromkeys(tag.casefold() for tag in chunk.tags)),
        links=tuple(
            PassageLink(target=link.target_id, type=link.type, strength=link.strength) for link in chunk.links
        ),
        chunk=ChunkColumns(
            place=named.place,
            archived=named.archived,
            type=chunk.type,
            modified=to_micros(known.modified_at),
            expires=to_micros(known.expires_at) if known.expires_at else 0,
            tokens=chunk.tokens,
        ),
    )


def _broken_passage(path: str, data: bytes, named: ChunkPath, fault: str) -> list[Passage]:
    row = ChunkColumns(place=named.place, archived=named.archived, fault=fault)
    return [Passage(1, "", kind="broken", chunk=row), *plain_passages(path, data)]
