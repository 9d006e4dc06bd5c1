"""Searching files by content: ``search_files``. In Python first; what takes longer goes to ripgrep, if it is there.

Most searches end before a program would have begun. A pattern that never ends is none that can be given (``wanted``),
and every search has an end in time, results and length.
"""

import time
from functools import partial
from typing import Annotated

import anyio.to_thread
from msgspec import Meta

from trunkline import BlockPath, ToolContext, ToolError, tool
from trunkline_files import ripgrep
from trunkline_files.python_search import search
from trunkline_files.search_query import MOST_PER_FILE, Hit, OutputMode, SearchQuery
from trunkline_files.text_files import pluralized
from trunkline_files.workspace import open_workspace

SEARCH_SECONDS = 15.0
QUICK_SECONDS = 1.0
LONGEST_RESULT = 20_000
LONGEST_QUERY = 1_000

Query = Annotated[str, Meta(max_length=LONGEST_QUERY)]
ContextLines = Annotated[int, Meta(ge=0, le=20)]
MaxResults = Annotated[int, Meta(ge=1, le=1_000)]


@tool(effect="read", timeout=45.0, untrusted_output=True, always_send=True)
async def search_files(
    context: ToolContext,
    query: Query,
    path: BlockPath = "",
    include: str = "",
    regex: bool = False,
    case_sensitive: bool | None = None,
    output: OutputMode = "content",
    context_lines: ContextLines = 0,
    max_results: MaxResults = 1_000,
) -> str:
    """Search the text files of the workspace for lines with a text or pattern.

    Args:
        query: The text as it stands; with regex a pattern such as "def \\w+_test".
        path: Only this folder or file.
        include: Only files such as *.md or src/**/*.py.
        regex: The query is a pattern (RE2).
        case_sensitive: Left out: if the query has capitals.
        output: Lines, files alone, or lines counted by file.
        context_lines: Lines to show around each.
        max_results: At most so many.
    """
    if not query.strip():
        raise ToolError("The query is empty. Say which text to look for.", kind="invalid_arguments")
    if "\0" in query:
        raise ToolError(
            "The query contains NUL, which no text file has. Nothing was searched.", kind="invalid_arguments"
        )
    ignore_case = query == query.lower() if case_sensitive is None else not case_sensitive
    around = context_lines if output == "content" else 0
    wanted = SearchQuery(query, regex, ignore_case, path, include, output, around)
    _ = wanted.pattern  # a pattern that is none is refused before anything is opened
    return (await _search(context, wanted, max_results)).text()


async def _search(context: ToolContext, query: SearchQuery, most: int) -> "SearchReport":
    helped = ripgrep.can_search(query)
    report = SearchReport(query, most)
    if await _search_in_thread(context, query, report, QUICK_SECONDS if helped else SEARCH_SECONDS):
        return report
    if helped:
        try:
            report = SearchReport(query, most)
            await _search_with_ripgrep(context, query, report)
            return report
        except ToolError:  # no sandbox, or it is not in there
            report = SearchReport(query, most)
            if await _search_in_thread(context, query, report, SEARCH_SECONDS):
                return report
    report.truncate(f"stopped after {SEARCH_SECONDS:g} seconds. Search a folder, or give include")
    return report


async def _search_in_thread(
    context: ToolContext, query: SearchQuery, report: "SearchReport", seconds: float
) -> bool:
    return await anyio.to_thread.run_sync(
        partial(_search_in_python, context, query, report, seconds), abandon_on_cancel=True
    )


def _search_in_python(
    context: ToolContext, query: SearchQuery, report: "SearchReport", seconds: float
) -> bool:
    """Search in Python; return whether the search finished within so many seconds."""
    deadline = time.monotonic() + seconds
    with open_workspace(context) as folder:
        for hit in search(folder, query):
            if hit is not None and not report.add_hit(hit):
                return True
            if time.monotonic() > deadline:
                return False
    return True


async def _search_with_ripgrep(context: ToolContext, query: SearchQuery, report: "SearchReport") -> None:
    """Search with ripgrep. Raises ToolError when that cannot be done."""
    with anyio.move_on_after(SEARCH_SECONDS) as deadline:
        async for hit in ripgrep.search_hits(context, query):
            if not report.add_hit(hit):
                return
    if deadline.cancelled_caught:
        report.truncate(f"stopped after {SEARCH_SECONDS:g} seconds. Search a folder, or give include")


class SearchReport:
    """The text that reports hits, limited in number and length."""

    def __init__(self, query: SearchQuery, most: int) -> None:
        self._wanted = query
        self._most = most
        self._lines: list[str] = []
        self._size = self._found = self._in_file = 0
        self._last = ("", 0)

    def add_hit(self, hit: Hit) -> bool:
        """Tell of one more; false when that is enough."""
        if hit.path != self._last[0]:
            self._in_file = 0
        if hit.is_match:
            if self._found == self._most:
                self.truncate(f"there is more than {self._most}. Search a folder, or raise max_results")
                return False
            self._in_file += 1
        if self._in_file > MOST_PER_FILE and self._wanted.output == "content":
            if hit.is_match:
                self._add_line(f"{hit.path}: [more than {pluralized(MOST_PER_FILE, 'line')}]")
            return True
        self._found += hit.is_match
        self._format_hit(hit)
        if self._size > LONGEST_RESULT:
            self.truncate("there is more. Search a folder, or for something rarer")
            return False
        return True

    def truncate(self, why: str) -> None:
        """Say at the end that this is not all."""
        self._lines.append(f"[Truncated: {why}.]")

    def text(self) -> str:
        """Return the whole result as text."""
        return "\n".join(self._lines) or f"No line {self._verb} {self._wanted.query!r}."

    @property
    def _verb(self) -> str:
        return "matches" if self._wanted.regex else "contains"

    def _format_hit(self, hit: Hit) -> None:
        if self._wanted.output == "files_with_matches":
            self._add_line(hit.path)
        elif self._wanted.output == "count":
            self._add_line(f"{hit.path}: {hit.number}")
        else:
            if self._wanted.around and self._lines and self._last != (hit.path, hit.number - 1):
                self._add_line("--")
            mark = ":" if hit.is_match else "-"
            self._add_line(f"{hit.path}{mark}{hit.number}{mark} {hit.display_text}".rstrip())
        self._last = (hit.path, hit.number)

    def _add_line(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
