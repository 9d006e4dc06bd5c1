"""What no word index can find (signs, parts of words, scripts without spaces): the text as it stands."""

from collections.abc import Iterator
from itertools import islice

from trunkline.memory.chunks.record import where
from trunkline.memory.index.passage import LARGEST, as_text
from trunkline.memory.index.readable import readable
from trunkline.memory.repository import Repository, files_in, folder_at
from trunkline.memory.search.shown import hit_at
from trunkline.messages.memory import MemoryHit, SearchMemory

LOOKED_AT = 20_000
"""Files that are read for one search: about a second."""


def search_literally(repository: Repository, query: SearchMemory) -> tuple[MemoryHit, ...]:
    """Files that hold the query as it stands, case aside."""
    wanted = query.query.strip().casefold()
    hits: list[MemoryHit] = []
    for path, lines in _texts(repository, query.path) if wanted else ():
        for number, line in enumerate(lines, start=1):
            if wanted in line.casefold():
                hits.append(hit_at(path, number, readable(path, lines), number - 1, 0.0))
                break
        if len(hits) >= query.limit:
            break
    return tuple(hits)


def _texts(repository: Repository, prefix: str) -> Iterator[tuple[str, list[str]]]:
    tree = repository.tree(repository.head())
    for path, entry in islice(files_in(folder_at(tree, prefix), prefix), LOOKED_AT):
        chunk = where(path)
        if chunk is not None and chunk.archived:
            continue
        text = as_text(repository.data(entry.blob)[:LARGEST])
        if text is not None:
            yield path, text.split("\n")
