"""Finding: ``search_files`` by content, ``find_files`` by name. Plain Python, no program is started.

The query is text and not a pattern: a pattern that backtracks for ever would hold up the whole worker.
"""

import re
import time
from collections.abc import Iterator
from fnmatch import translate
from typing import Annotated

from msgspec import Meta

from trunkline import BlockPath, Folder, PathRefused, ToolContext, ToolError, tool
from trunkline_files.texts import LARGEST_EDIT, counted, is_binary
from trunkline_files.workspace import opened

MOST_PER_FILE = 50
MOST_SECONDS = 15.0
LONGEST_RESULT = 20_000
LONGEST_LINE = 300
MOST_FOUND = 100
DEEPEST_SEARCH = 32

Depth = Annotated[int, Meta(ge=1, le=DEEPEST_SEARCH)]


@tool(effect="read", timeout=30.0)
def search_files(context: ToolContext, query: str, path: BlockPath = "", include: str = "") -> str:
    """Search the text files of the workspace for lines that contain a text; small letters match capitals too.

    Args:
        query: The text to look for, as it stands; not a pattern.
        path: The folder or file to search, relative to the workspace; empty for all.
        include: Only files whose name or path matches, such as *.md or src/**/*.py; empty for all.
    """
    if not query.strip():
        raise ToolError("The query is empty. Say which text to look for.")
    deadline, size, lines = time.monotonic() + MOST_SECONDS, 0, []
    with opened(context) as folder:
        for line in _matches(folder, query, path, include):
            lines.append(line)
            size += len(line) + 1
            if size > LONGEST_RESULT:
                lines.append("[Cut here: there is more. Search a folder, or for something rarer.]")
                break
            if time.monotonic() > deadline:
                lines.append(f"[Stopped after {MOST_SECONDS:g} seconds. Search a folder, or give include.]")
                break
    found = [line for line in lines if line]
    return "\n".join(found) if found else f"No line contains {query!r}."


@tool(effect="read", timeout=30.0)
def find_files(context: ToolContext, pattern: str, path: BlockPath = "", max_depth: Depth = 8) -> str:
    """Find files and folders of the workspace by name; at most 100.

    Args:
        pattern: A name with * and ?, such as *.md, or a path with them, such as notes/**/*.md.
        path: The folder to look in, relative to the workspace; empty for all.
        max_depth: How many folders deep to look.
    """
    if not pattern.strip():
        raise ToolError("The pattern is empty. Give a name such as *.md.")
    found: list[str] = []
    more = False
    with opened(context) as folder:
        for entry in folder.walk(path, depth=max_depth):
            if not matches(pattern, entry.path):
                continue
            if len(found) == MOST_FOUND:
                more = True
                break
            found.append(f"{entry.path}/" if entry.kind == "folder" else entry.path)
    if not found:
        return f"Nothing matches {pattern!r}."
    return "\n".join([*found, *([f"[Cut here: more than {MOST_FOUND} match.]"] if more else [])])


def matches(pattern: str, path: str) -> bool:
    """Whether a path matches: a pattern with / against the whole path, where ** is any number of folders, another
    one against the last name."""
    if "/" not in pattern:
        return re.match(translate(pattern.lower()), path.rpartition("/")[2].lower()) is not None
    names = path.lower().split("/")
    parts = [part for part in pattern.lower().split("/") if part not in ("", ".")]
    reached = {0}  # how many parts are used up, in all ways at once, so that no pattern takes long
    for name in names:
        reached = set(_after(parts, _past_stars(parts, reached), name))
    return len(parts) in _past_stars(parts, reached)


def _past_stars(parts: list[str], reached: set[int]) -> set[int]:
    past = set(reached)
    for position in sorted(reached):
        while position < len(parts) and parts[position] == "**":
            position += 1
            past.add(position)
    return past


def _after(parts: list[str], reached: set[int], name: str) -> Iterator[int]:
    for position in reached:
        if position == len(parts):
            continue
        if parts[position] == "**":
            yield position
        elif re.match(translate(parts[position]), name):
            yield position + 1


def _matches(folder: Folder, query: str, path: str, include: str) -> Iterator[str]:
    """The lines that match; between them an empty one a file, so that the caller can look at the clock."""
    wanted = re.compile(re.escape(query), re.IGNORECASE if query == query.lower() else 0)
    for name in _files(folder, path):
        yield ""
        if not include or matches(include, name):
            yield from _in_file(folder, wanted, name)


def _files(folder: Folder, path: str) -> Iterator[str]:
    if folder.stat(path).kind == "file":
        yield path
        return
    for entry in folder.walk(path, depth=DEEPEST_SEARCH):
        if entry.kind == "file" and entry.size <= LARGEST_EDIT and not _hidden_store(entry.path):
            yield entry.path


def _hidden_store(path: str) -> bool:
    return path.startswith(".git/") or "/.git/" in path


def _in_file(folder: Folder, wanted: re.Pattern[str], path: str) -> Iterator[str]:
    try:
        content = folder.read_bytes(path, limit=LARGEST_EDIT)
    except (OSError, PathRefused):
        return  # it vanished, may not be read, or is protected: a search passes it by
    if is_binary(content[:8192]):
        return
    count = 0
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        if wanted.search(line):
            count += 1
            if count > MOST_PER_FILE:
                yield f"{path}: [more than {counted(MOST_PER_FILE, 'line')}]"
                return
            yield f"{path}:{number}: {line.strip()[:LONGEST_LINE]}"
