"""Literal search for what the word index cannot find: signs, parts of words, scripts without spaces, and file
names."""

from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from trunkline import MemoryHit
from trunkline.api.chunks import parse_chunk_path
from trunkline.api.memory import SearchMemory, is_untouched
from trunkline.api.store import conversation_of_attachment, is_log_path, is_under, parse_conversation_path
from trunkline_git_store.index.conversation import conversation_passages
from trunkline_git_store.index.file_kinds import is_episode
from trunkline_git_store.index.json_text import readable_lines
from trunkline_git_store.index.passage import MAX_INDEXED_BYTES, try_decode_text
from trunkline_git_store.repository import Repository, files_in, tree_at
from trunkline_git_store.search.snippets import build_line_hit

MAX_FILES = 20_000
"""Files that are read for one search: about a second."""


def search_literally(repository: Repository, query: SearchMemory) -> tuple[MemoryHit, ...]:
    """Files that hold the query as it stands, case aside."""
    wanted = query.query.strip().casefold()
    hits: list[MemoryHit] = []
    for path, pieces in _texts(repository, query.path, wanted) if wanted else ():
        for line, lines in pieces:
            best = next((at for at, text in enumerate(lines) if wanted in text.casefold()), None)
            if best is not None:
                hits.append(
                    build_line_hit(
                        path,
                        line if parse_conversation_path(path) else line + best,
                        readable_lines(path, lines),
                        best,
                        0.0,
                    )
                )
                break
        if len(hits) >= query.limit:
            break
    return tuple(hits)


TextLines = tuple[int, list[str]]
"""The number of a line, and the lines from there on; of a conversation those of one message."""


def _texts(repository: Repository, prefix: str, folder: str) -> Iterator[tuple[str, list[TextLines]]]:
    tree = repository.tree(repository.head())
    for path, entry in islice(files_in(tree_at(tree, prefix), prefix), MAX_FILES):
        chunk = parse_chunk_path(path)
        if (chunk is not None and chunk.archived) or is_episode(path) or is_log_path(path):
            continue
        if conversation_of_attachment(path) is not None:
            continue
        data = repository.data(entry.blob)
        text = try_decode_text(data[:MAX_INDEXED_BYTES])
        if text is None or is_untouched(path, text):
            continue
        if parse_conversation_path(path) is None:
            yield path, [(1, text.split("\n"))]
        elif _as_json(folder) in text.casefold():
            said = conversation_passages(path, data)
            yield path, [(one.line, one.text.split("\n")) for one in said if not one.aside]


def _as_json(text: str) -> str:
    """A text as it stands in a file of JSON."""
    return msgspec.json.encode(text).decode()[1:-1]


def search_names(paths: Iterable[str], query: SearchMemory) -> tuple[MemoryHit, ...]:
    """The files whose path holds every word of the query; those with it in the name come first."""
    wanted = query.query.casefold().split()
    hits: list[MemoryHit] = []
    for path in paths:
        folded, name = path.casefold(), path.rpartition("/")[2].casefold()
        if wanted and is_under(path, query.path) and all(word in folded for word in wanted):
            score = sum((word in name) + name.startswith(word) for word in wanted) / len(wanted)
            hits.append(MemoryHit(path=path, line=1, content=path, context="", score=score))
    hits.sort(key=lambda hit: (-hit.score, hit.path))
    return tuple(hits[: query.limit])
