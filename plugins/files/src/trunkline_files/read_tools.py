"""Looking at files and folders: ``read_file``, ``list_directory``, ``file_info``. Nothing here changes anything."""

import io
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Annotated, BinaryIO

import anyio.to_thread
from msgspec import Meta

from trunkline import BlockPath, ToolContext, ToolError, tool
from trunkline.api.text import format_local_time
from trunkline_files.file_types import is_document
from trunkline_files.text_files import (
    HEAD,
    count_lines,
    is_binary,
    not_text_error,
    pluralized,
    read_part,
    skip_lines,
)
from trunkline_files.workspace import open_workspace

LONGEST_READ = 100_000
MOST_ENTRIES = 2_000
DEEPEST_LIST = 16

Offset = Annotated[int, Meta(ge=0)]
Limit = Annotated[int, Meta(ge=1, le=LONGEST_READ)]
MaxDepth = Annotated[int, Meta(ge=1, le=DEEPEST_LIST)]


@tool(effect="read", timeout=180.0, untrusted_output=True, always_send=True)
async def read_file(
    context: ToolContext,
    path: BlockPath,
    offset: Offset = 0,
    limit: Limit = LONGEST_READ,
    start_line: int | None = None,
    end_line: int | None = None,
) -> str:
    """Read a file of the workspace: text as it is, documents (PDF, DOCX, XLSX, …) as their text.

    Args:
        path: The file, relative to the workspace.
        offset: Characters to skip.
        limit: Characters to read at most.
        start_line: The first line, from 1; -1 is the last one of the file.
        end_line: The last line.
    """
    part = _ReadRange(path, offset, limit, start_line, end_line)
    text = await anyio.to_thread.run_sync(partial(_read_text_file, context, part), abandon_on_cancel=True)
    if text is None:
        document = await context.documents.read(path)
        text = part.read(io.BytesIO(document.text.encode(errors="replace")))
    return text


@dataclass(frozen=True, slots=True)
class _ReadRange:
    """The requested part of a file: characters from ``offset`` on, or lines."""

    path: str
    offset: int
    limit: int
    first: int | None
    last: int | None

    def read(self, file: BinaryIO) -> str:
        """Return the requested part, with a note where it is cut. Raises ToolError."""
        by_lines = self.first is not None or self.last is not None
        if by_lines and self.offset:
            raise ToolError("Give either offset or lines. Nothing was read.", kind="invalid_arguments")
        try:
            return self._read_lines(file) if by_lines else self._read_characters(file)
        except UnicodeDecodeError as error:
            raise not_text_error(self.path) from error

    def _read_characters(self, file: BinaryIO) -> str:
        file.seek(0)
        text, more = read_part(file, self.offset, self.limit)
        end = self.offset + len(text)
        if more:
            return (
                f"{text}\n\n[Cut here: this is characters {self.offset} to {end}. Read on with offset={end}.]"
            )
        if self.offset and not text:
            return f"[The file has no more than {self.offset} characters.]"
        return text

    def _read_lines(self, file: BinaryIO) -> str:
        first, last = self._absolute_lines(file)
        skipped = skip_lines(file, first - 1)
        text, more = ("", False) if skipped is None else read_part(file, 0, self.limit)
        if skipped is None or not text:
            return f"[The file has {pluralized(count_lines(file), 'line')}.]"
        ended = None if last is None else _first_lines(text, last - first + 1)
        if ended is not None or not more:
            return text if ended is None else ended
        end = skipped + len(text)
        return f"{text}\n\n[Cut here: more of these lines follow. Read on with offset={end}.]"

    def _absolute_lines(self, file: BinaryIO) -> tuple[int, int | None]:
        first, last = 1 if self.first is None else self.first, self.last
        if first < 0 or (last is not None and last < 0):
            all_of_them = count_lines(file)
            first = max(1, all_of_them + 1 + first) if first < 0 else first
            last = all_of_them + 1 + last if last is not None and last < 0 else last
        if first < 1 or (last is not None and last < first):
            raise ToolError(
                f"Lines {self.first} to {self.last} do not exist: the first line is 1, the last -1. Nothing was read.",
                kind="invalid_arguments",
            )
        return first, last


def _first_lines(text: str, lines: int) -> str | None:
    """The text up to that many line ends; None when it has fewer."""
    at = 0
    for _ in range(lines):
        at = text.find("\n", at) + 1
        if not at:
            return None
    return text[:at]


def _read_text_file(context: ToolContext, part: _ReadRange) -> str | None:
    """The part of a text file; None for a document, which others read."""
    with open_workspace(context) as folder:
        if folder.stat(part.path).kind == "folder":
            raise ToolError(
                f"{part.path!r} is a folder. list_directory shows what is in it.", kind="invalid_arguments"
            )
        with folder.open_read(part.path) as file:
            head = file.read(HEAD)
            if is_document(head):
                return None
            if is_binary(head):
                raise not_text_error(part.path, head)
            return part.read(file)


@tool(effect="read", untrusted_output=True, always_send=True)
def list_directory(context: ToolContext, path: BlockPath = "", max_depth: MaxDepth = 1) -> str:
    """List a folder of the workspace: folders end with /, files come with their size in bytes.

    Args:
        path: The folder, relative to the workspace; empty for the workspace itself.
        max_depth: How many folders deep to look; 1 is the folder itself.
    """
    with open_workspace(context) as folder:
        above = len(folder.stat(path).path.rstrip("/"))
        entries = list(islice(folder.walk(path, depth=max_depth), MOST_ENTRIES + 1))
    if not entries:
        return "The folder is empty."
    lines = []
    for entry in entries[:MOST_ENTRIES]:
        name = entry.path[above:].lstrip("/")
        lines.append(f"{name}/" if entry.kind == "folder" else f"{name}  {_size(entry.kind, entry.size)}")
    if len(entries) > MOST_ENTRIES:
        lines.append(f"[Truncated: more than {MOST_ENTRIES}. find_files finds by name.]")
    return "\n".join(lines)


@tool(effect="read")
def file_info(context: ToolContext, path: BlockPath) -> str:
    """Show kind, size and time of change of a file or folder of the workspace, and whether it is text.

    Args:
        path: The file or folder, relative to the workspace.
    """
    with open_workspace(context) as folder:
        entry = folder.stat(path)
        if entry.kind == "link":
            raise ToolError(
                f"{path!r} is a symbolic link, which is not followed. Name the file itself.",
                kind="permission_denied",
            )
        lines = [f"path: {entry.path or '.'}", f"kind: {entry.kind}"]
        if entry.kind == "folder":
            lines.append(
                f"holds: {pluralized(len(folder.listdir(path)), 'entry').replace('entrys', 'entries')}"
            )
        else:
            lines.append(f"size: {entry.size} bytes")
        if entry.kind == "file":
            lines.append(f"text: {'no' if is_binary(folder.read_bytes(path, limit=8192)) else 'yes'}")
        lines.append(f"changed: {format_local_time(entry.modified_at, seconds=True)}")
    return "\n".join(lines)


def _size(kind: str, size: int) -> str:
    return f"{size}" if kind == "file" else f"({kind})"
