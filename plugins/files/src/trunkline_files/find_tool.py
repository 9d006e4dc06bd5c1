"""Finding files by name: ``find_files``. Opens none."""

import time
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from trunkline import BlockPath, Folder, ToolContext, ToolError, tool
from trunkline_files.globs import matches
from trunkline_files.workspace import open_workspace

MAX_RESULTS = 100
DEEPEST_SEARCH = 32
SEARCH_SECONDS = 15.0

MaxDepth = Annotated[int, Meta(ge=1, le=DEEPEST_SEARCH)]
MaxResults = Annotated[int, Meta(ge=1, le=1_000)]


@tool(effect="read", timeout=30.0, untrusted_output=True)
def find_files(
    context: ToolContext,
    pattern: str,
    path: BlockPath = "",
    max_depth: MaxDepth = 8,
    max_results: MaxResults = MAX_RESULTS,
    newest_first: bool = False,
) -> str:
    """Find files and folders of the workspace by name.

    Args:
        pattern: A name with * and ?, such as *.md or *.{ts,tsx}, or a path with them, such as notes/**/*.md.
        path: The folder to look in, relative to the workspace; empty for all.
        max_depth: How many folders deep to look.
        max_results: The largest number of results.
        newest_first: Sort by time of change, newest first, instead of by name.
    """
    if not pattern.strip():
        raise ToolError("The pattern is empty. Give a name such as *.md.", kind="invalid_arguments")
    found: list[tuple[float, str]] = []
    notes: list[str] = []
    with open_workspace(context) as folder:
        for changed, name in _find(folder, pattern, path, max_depth, notes):
            found.append((changed, name))
            if len(found) > max_results and not newest_first:
                break
    if newest_first:
        found.sort(key=lambda one: (-one[0], one[1]))
    if len(found) > max_results:
        notes.insert(
            0, f"[Truncated: more than {max_results} match. Look in a folder, or raise max_results.]"
        )
    names = [name for _, name in found[:max_results]]
    return "\n".join([*names, *notes]) or f"Nothing matches {pattern!r}."


def _find(
    folder: Folder, pattern: str, path: str, depth: int, notes: list[str]
) -> Iterator[tuple[float, str]]:
    """Yield the modification time and the name of each match; the name of a folder ends with a slash."""
    deadline = time.monotonic() + SEARCH_SECONDS
    for entry in folder.walk(path, depth=depth):
        if matches(pattern, entry.path):
            name = f"{entry.path}/" if entry.kind == "folder" else entry.path
            yield entry.modified_at.timestamp(), name
        if time.monotonic() > deadline:
            notes.append(f"[Truncated: stopped after {SEARCH_SECONDS:g} seconds. Look in a folder.]")
            return
