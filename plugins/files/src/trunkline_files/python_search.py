"""Searching files in Python, a piece at a time, whatever their size. What is wanted is ``wanted``'s to say."""

from collections import deque
from collections.abc import Iterator
from typing import BinaryIO

from trunkline import Folder, PathRefused
from trunkline_files.globs import matches
from trunkline_files.search_query import Hit, SearchQuery

DEEPEST = 32
PIECE = 16 * 1024
"""Bytes that are searched at once: between two pieces the clock is looked at."""

LONGEST = 32 * 1024
"""Bytes behind which a line is cut, and the rest taken for another one."""

_HEAD = 8192


def search(folder: Folder, query: SearchQuery) -> Iterator[Hit | None]:
    """Yield the hits, file by file in the order of their names, and None now and then so that the caller can check the
    time.

    A file that vanished, may not be read, is protected or binary is passed by.
    """
    for path in _files(folder, query.path):
        yield None
        if query.include and not matches(query.include, path):
            continue
        try:
            with folder.open_read(path) as file:
                if b"\0" not in file.read(_HEAD):
                    file.seek(0)
                    yield from _search_file(file, path, query)
        except (OSError, PathRefused):
            continue


def _files(folder: Folder, path: str) -> Iterator[str]:
    if folder.stat(path).kind == "file":
        yield path
        return
    for entry in folder.walk(path, depth=DEEPEST):
        if entry.kind == "file" and not is_git_internal(entry.path):
            yield entry.path


def is_git_internal(path: str) -> bool:
    """Report whether the file is one of git's own."""
    return path.startswith(".git/") or "/.git/" in path


def _search_file(file: BinaryIO, path: str, query: SearchQuery) -> Iterator[Hit | None]:
    if query.output == "count":
        yield from _count_matches(file, path, query)
        return
    found = 0
    for hit in _matching_lines(file, path, query):
        yield hit
        found += hit is not None and hit.is_match
        if found == query.max_hits_per_file:
            return


def _count_matches(file: BinaryIO, path: str, query: SearchQuery) -> Iterator[Hit | None]:
    count = 0
    for piece in _pieces(file):
        if query.may_match(piece):
            count += sum(query.pattern.search(line) is not None for line in _split_lines(piece))
        yield None
    if count:
        yield Hit(path, count, b"")


def _matching_lines(file: BinaryIO, path: str, query: SearchQuery) -> Iterator[Hit | None]:
    """The lines that are found, with those around them."""
    first, due = 1, 0
    before: deque[Hit] = deque(maxlen=query.around)
    for piece in _pieces(file):
        yield None
        if not due and not query.may_match(piece):
            before.extend(_context_before(piece, path, first, query.around))
            first += piece.count(b"\n")
            continue
        for at, line in enumerate(_split_lines(piece)):
            if query.pattern.search(line) is not None:
                yield from before
                before.clear()
                yield Hit(path, first + at, line)
                due = query.around
            elif due:
                yield Hit(path, first + at, line, False)
                due -= 1
            else:
                before.append(Hit(path, first + at, line, False))
        first += piece.count(b"\n")


def _context_before(piece: bytes, path: str, first: int, number: int) -> Iterator[Hit]:
    """The last lines of a piece whose first line is number ``first``."""
    if not number:
        return
    after = first + piece.count(b"\n") + (not piece.endswith(b"\n"))
    lines = _split_lines(piece)[-number:]
    yield from (Hit(path, after - len(lines) + at, line, False) for at, line in enumerate(lines))


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """The file in pieces of whole lines, as far as these are not too long."""
    while piece := file.read(PIECE):
        yield piece if piece.endswith(b"\n") else piece + file.readline(LONGEST)


def _split_lines(piece: bytes) -> list[bytes]:
    lines = piece.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines
