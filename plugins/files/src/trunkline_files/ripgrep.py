"""Searching files with ripgrep, in the sandbox, where both are there: for what takes long in Python.

It reads the same files and finds the same lines in the same order. It gets the workspace only, to read:
nothing of the model's is a program, an option or a path outside.
"""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import anyio

from trunkline import SandboxLimits, ToolContext, ToolError
from trunkline.api.paths import is_absolute_path
from trunkline_files.globs import matches
from trunkline_files.python_search import DEEPEST, is_git_internal
from trunkline_files.ripgrep_regex import to_ripgrep
from trunkline_files.search_query import Hit, SearchQuery

PROGRAM = "rg"

_OPTIONS = (
    "--no-config", "--no-ignore", "--hidden", "--no-messages", "--glob=!.git", "--sort=path", "--color=never",
    "--no-heading", "--with-filename", "--line-number", "--null", "--no-context-separator",
    "--max-columns=4096", "--max-columns-preview", f"--max-depth={DEEPEST}",
)  # fmt: skip
_SHARE = SandboxLimits(processes=16, writable=False)


def can_search(query: SearchQuery) -> bool:
    """Report whether it may be there, and finds what is wanted as Python does."""
    known = not query.regex or to_ripgrep(query.query) is not None
    return known and not is_absolute_path(query.path) and shutil.which(PROGRAM) is not None


async def search(context: ToolContext, query: SearchQuery) -> AsyncIterator[Hit]:
    """Yield the hits. Closing the iterator ends the program.

    Raises:
        ToolError: it cannot run here, or not with this pattern.
    """
    process = await context.sandbox.start(_argv(query), workspace=context.workspace, env={}, limits=_SHARE)
    async with process:
        rest = b""
        try:
            while True:
                *lines, rest = (rest + await process.stdout.receive()).split(b"\n")
                for hit in _parse_hits(lines, query):
                    yield hit
        except anyio.EndOfStream:
            pass
        if await process.wait() not in (0, 1):
            raise ToolError("ripgrep cannot search here.", kind="unsupported")


async def search_hits(context: ToolContext, query: SearchQuery) -> AsyncIterator[Hit]:
    """``search``, closed in any case."""
    async with aclosing(search(context, query)) as found:  # type: ignore[type-var]
        async for hit in found:
            yield hit


def _argv(query: SearchQuery) -> list[str]:
    argv = [PROGRAM, *_OPTIONS]
    argv.append("--ignore-case" if query.ignore_case else "--case-sensitive")
    if not query.regex:
        argv.append("--fixed-strings")
    if query.output == "count":
        argv.append("--count")
    else:
        argv += [f"--max-count={query.max_hits_per_file}", f"--context={query.around}"]
    pattern = to_ripgrep(query.query) if query.regex else query.query
    return [*argv, f"--regexp={pattern}", "--", query.path or "."]


def _parse_hits(lines: list[bytes], query: SearchQuery) -> Iterator[Hit]:
    for line in lines:
        name, there, rest = line.partition(b"\0")
        path = name.decode(errors="surrogateescape").removeprefix("./")
        if not there or is_git_internal(path) or (query.include and not matches(query.include, path)):
            continue
        digits = len(rest) - len(rest.lstrip(b"0123456789"))
        if digits:
            found = query.output == "count" or rest[digits : digits + 1] == b":"
            yield Hit(path, int(rest[:digits]), rest[digits + 1 :], found)
