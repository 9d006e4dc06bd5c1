"""Changing what a file holds: ``write_file``, ``append_to_file``, ``insert_in_file``, ``replace_in_file``, each on disk
when it answers; and ``preview_change``, which changes nothing."""

import os
from typing import Annotated, Literal

from msgspec import Meta

from trunkline import ApprovalDetail, BlockPath, Folder, ToolContext, ToolError, diff_preview, tool
from trunkline_files.text_edits import inserted, replaced
from trunkline_files.text_files import HEAD, counted, encoded, is_binary, whole
from trunkline_files.workspace import opened, parent_of

Line = Annotated[int, Meta(ge=0)]

_TAIL = 2_000


@tool(effect="write", free=("content",), plan=True, always_send=True)
def write_file(context: ToolContext, path: BlockPath, content: str) -> str:
    """Write a whole text file in the workspace, with the folders it needs. Replaces what was there.

    Args:
        path: The file, relative to the workspace.
        content: The whole text.
    """
    data = encoded(content)
    with opened(context) as folder:
        there = folder.exists(path)
        _make_way(folder, path)
        folder.write_atomic(path, data)
    return f"{'Replaced' if there else 'Created'} {path} ({counted(len(content), 'character')})."


@write_file.shows
def _written(context: ToolContext, path: str, content: str) -> ApprovalDetail:
    return diff_preview(path, _now(context, path), content)


@tool(effect="write", free=("content",), plan=True)
def append_to_file(context: ToolContext, path: BlockPath, content: str) -> str:
    """Add text at the end of a file of the workspace, making the file when it is absent.

    Args:
        path: The file, relative to the workspace.
        content: The text to add, with its own line ends.
    """
    data = encoded(content)
    with opened(context) as folder:
        _make_way(folder, path)
        folder.append(path, data)
    return f"Added {counted(len(content), 'character')} to {path}."


@append_to_file.shows
def _appended(context: ToolContext, path: str, content: str) -> ApprovalDetail:
    now = _end(context, path)
    return diff_preview(path, now, (now or "") + content)


@tool(effect="write", free=("text",), plan=True)
def insert_in_file(context: ToolContext, path: BlockPath, line: Line, text: str) -> str:
    """Put lines of text into a file of the workspace, behind one of its lines.

    Args:
        path: The file, relative to the workspace.
        line: The line behind which the text goes, counted from 1; 0 puts it at the beginning.
        text: The lines to put there.
    """
    with opened(context) as folder:
        folder.write_atomic(path, encoded(inserted(whole(folder, path), path, line, text)))
    return f"Put {counted(len(text), 'character')} into {path} behind line {line}."


@insert_in_file.shows
def _inserted(context: ToolContext, path: str, line: int, text: str) -> ApprovalDetail:
    now = _now(context, path) or ""
    return diff_preview(path, now, inserted(now, path, line, text))


@tool(effect="write", free=("find", "replace"), plan=True)
def replace_in_file(context: ToolContext, path: BlockPath, find: str, replace: str, all: bool = False) -> str:
    """Replace a text in a file of the workspace. It must be there once, or all be given.

    Args:
        path: The file, relative to the workspace.
        find: The text to replace, exactly as it stands in the file, line ends and spaces included.
        replace: The text to put there.
        all: Whether to replace every place.
    """
    with opened(context) as folder:
        text = whole(folder, path)
        changed = replaced(text, path, find, replace, all)
        folder.write_atomic(path, encoded(changed))
    count = text.count(find)
    return f"Replaced {counted(count, 'place')} in {path}."


@replace_in_file.shows
def _replaced(context: ToolContext, path: str, find: str, replace: str, all: bool) -> ApprovalDetail:
    now = _now(context, path) or ""
    return diff_preview(path, now, replaced(now, path, find, replace, all))


@tool(effect="read", data=True)
def preview_change(
    context: ToolContext,
    path: BlockPath,
    change: Literal["write", "append", "insert", "replace"],
    text: str = "",
    find: str = "",
    line: Line = 0,
    all: bool = False,
) -> str:
    """Show as a diff what a change of a file would do, without making it: nothing is written and nobody is asked.

    Args:
        path: The file, relative to the workspace.
        change: What the change would be, as write_file, append_to_file, insert_in_file and replace_in_file make it.
        text: What would be written, appended, inserted, or put in the place of what is found.
        find: The text to replace.
        line: The line behind which the text would be inserted.
        all: Whether every place would be replaced.
    """
    encoded(text)
    with opened(context) as folder:
        if change in ("insert", "replace"):
            now: str | None = whole(folder, path)
        else:
            now = whole(folder, path) if folder.exists(path) else None
    changed = {
        "write": lambda: text,
        "append": lambda: (now or "") + text,
        "insert": lambda: inserted(now or "", path, line, text),
        "replace": lambda: replaced(now or "", path, find, text, all),
    }[change]()
    return f"{diff_preview(path, now, changed).text}\n[Nothing was changed.]"


def _now(context: ToolContext, path: str) -> str | None:
    """What the file holds now; None when there is none."""
    with opened(context) as folder:
        return whole(folder, path) if folder.exists(path) else None


def _end(context: ToolContext, path: str) -> str | None:
    """How the file ends now, for one that may be of any size; None when there is none."""
    with opened(context) as folder:
        if not folder.exists(path):
            return None
        with folder.open_read(path) as file:
            if is_binary(file.read(HEAD)):
                raise ToolError(f"{path!r} is not a text file.", kind="invalid_arguments")
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            return file.read().decode(errors="replace")


def _make_way(folder: Folder, path: str) -> None:
    """Make the folders on the way to a file, once its whole path is known to be allowed."""
    folder.exists(path)
    if parent := parent_of(path):
        folder.mkdir(parent)
