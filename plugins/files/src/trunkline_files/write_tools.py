"""Changing what a file holds: ``write_file``, ``append_to_file``, ``insert_in_file``, ``replace_in_file``, each on disk
when it answers; and ``preview_change``, which changes nothing."""

import os
from typing import Annotated, Literal

from msgspec import Meta

from trunkline import ApprovalDetail, BlockPath, Folder, ToolContext, ToolError, diff_preview, tool
from trunkline_files.text_edits import insert_lines, replace_text
from trunkline_files.text_files import HEAD, encode_text, is_binary, pluralized, read_whole
from trunkline_files.workspace import open_workspace, parent_path

LineNumber = Annotated[int, Meta(ge=0)]

_TAIL = 2_000


@tool(effect="write", unbound_params=("content",), in_plan_mode=True, always_send=True)
def write_file(context: ToolContext, path: BlockPath, content: str) -> str:
    """Write a whole text file in the workspace, with the folders it needs. Replaces what was there.

    Args:
        path: The file, relative to the workspace.
        content: The whole text.
    """
    data = encode_text(content)
    with open_workspace(context) as folder:
        there = folder.exists(path)
        _make_parent(folder, path)
        folder.write_atomic(path, data)
    return f"{'Replaced' if there else 'Created'} {path} ({pluralized(len(content), 'character')})."


@write_file.previewer
def _preview_write(context: ToolContext, path: str, content: str) -> ApprovalDetail:
    return diff_preview(path, _current_text(context, path), content)


@tool(effect="write", unbound_params=("content",), in_plan_mode=True)
def append_to_file(context: ToolContext, path: BlockPath, content: str) -> str:
    """Add text at the end of a file of the workspace, creating the file when it is missing.

    Args:
        path: The file, relative to the workspace.
        content: The text to add, with its own line ends.
    """
    data = encode_text(content)
    with open_workspace(context) as folder:
        _make_parent(folder, path)
        folder.append(path, data)
    return f"Added {pluralized(len(content), 'character')} to {path}."


@append_to_file.previewer
def _preview_append(context: ToolContext, path: str, content: str) -> ApprovalDetail:
    now = _tail_text(context, path)
    return diff_preview(path, now, (now or "") + content)


@tool(effect="write", unbound_params=("text",), in_plan_mode=True)
def insert_in_file(context: ToolContext, path: BlockPath, line: LineNumber, text: str) -> str:
    """Insert lines of text into a file of the workspace, after one of its lines.

    Args:
        path: The file, relative to the workspace.
        line: The line after which the text is inserted, counted from 1; 0 is the beginning of the file.
        text: The lines to insert.
    """
    with open_workspace(context) as folder:
        folder.write_atomic(path, encode_text(insert_lines(read_whole(folder, path), path, line, text)))
    return f"Put {pluralized(len(text), 'character')} into {path} behind line {line}."


@insert_in_file.previewer
def _preview_insert(context: ToolContext, path: str, line: int, text: str) -> ApprovalDetail:
    now = _current_text(context, path) or ""
    return diff_preview(path, now, insert_lines(now, path, line, text))


@tool(effect="write", unbound_params=("find", "replace"), in_plan_mode=True)
def replace_in_file(context: ToolContext, path: BlockPath, find: str, replace: str, all: bool = False) -> str:
    """Replace a text in a file of the workspace. It must be there once, or all be given.

    Args:
        path: The file, relative to the workspace.
        find: The text to replace, exactly as it stands in the file, line ends and spaces included.
        replace: The text to put there.
        all: Whether to replace every place.
    """
    with open_workspace(context) as folder:
        text = read_whole(folder, path)
        changed = replace_text(text, path, find, replace, all)
        folder.write_atomic(path, encode_text(changed))
    count = text.count(find)
    return f"Replaced {pluralized(count, 'place')} in {path}."


@replace_in_file.previewer
def _preview_replace(context: ToolContext, path: str, find: str, replace: str, all: bool) -> ApprovalDetail:
    now = _current_text(context, path) or ""
    return diff_preview(path, now, replace_text(now, path, find, replace, all))


@tool(effect="read", untrusted_output=True)
def preview_change(
    context: ToolContext,
    path: BlockPath,
    change: Literal["write", "append", "insert", "replace"],
    text: str = "",
    find: str = "",
    line: LineNumber = 0,
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
    encode_text(text)
    with open_workspace(context) as folder:
        if change in ("insert", "replace"):
            now: str | None = read_whole(folder, path)
        else:
            now = read_whole(folder, path) if folder.exists(path) else None
    changed = {
        "write": lambda: text,
        "append": lambda: (now or "") + text,
        "insert": lambda: insert_lines(now or "", path, line, text),
        "replace": lambda: replace_text(now or "", path, find, text, all),
    }[change]()
    return f"{diff_preview(path, now, changed).text}\n[Nothing was changed.]"


def _current_text(context: ToolContext, path: str) -> str | None:
    """Return the current content of the file; None when there is no file."""
    with open_workspace(context) as folder:
        return read_whole(folder, path) if folder.exists(path) else None


def _tail_text(context: ToolContext, path: str) -> str | None:
    """Return the end of the file, which may be of any size; None when there is no file."""
    with open_workspace(context) as folder:
        if not folder.exists(path):
            return None
        with folder.open_read(path) as file:
            if is_binary(file.read(HEAD)):
                raise ToolError(f"{path!r} is not a text file.", kind="invalid_arguments")
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            return file.read().decode(errors="replace")


def _make_parent(folder: Folder, path: str) -> None:
    """Make the folders on the way to a file, once its whole path is known to be allowed."""
    folder.exists(path)
    if parent := parent_path(path):
        folder.mkdir(parent)
