"""Making, copying, moving and deleting: what stands where. Nothing here looks into a file."""

from collections.abc import Iterator
from typing import BinaryIO

from trunkline import ApprovalDetail, BlockPath, Folder, ToolContext, ToolError, diff_preview, preview, tool
from trunkline.api.text import format_local_time
from trunkline_files.text_files import read_whole
from trunkline_files.workspace import open_workspace, parent_path

_PIECE = 1 << 20
_SHOWN = 200_000


@tool(effect="write", idempotent=True)
def create_directory(context: ToolContext, path: BlockPath) -> str:
    """Create a folder in the workspace, with its parents. An existing folder is no error.

    Args:
        path: The folder, relative to the workspace.
    """
    with open_workspace(context) as folder:
        if folder.exists(path) and folder.stat(path).kind != "folder":
            raise ToolError(f"{path!r} is a file already. Choose another name.", kind="conflict")
        folder.mkdir(path)
    return f"The folder {path} is there."


@tool(effect="write")
def copy_file(context: ToolContext, source: BlockPath, target: BlockPath) -> str:
    """Copy a file within the workspace. Nothing is overwritten.

    Args:
        source: The file to copy.
        target: The copy; its folder is created when it is missing.
    """
    with open_workspace(context) as folder:
        entry = folder.stat(source)
        if entry.kind != "file":
            raise ToolError(
                f"{source!r} is a {entry.kind}. Only files can be copied.", kind="invalid_arguments"
            )
        with folder.open_read(source) as file:
            _prepare_target(folder, target)
            folder.write_atomic(target, _read_chunks(file))
    return f"Copied {source} to {target}."


@copy_file.previewer
def _preview_copy(context: ToolContext, source: str, target: str) -> ApprovalDetail:
    return preview("message", f"copy {_describe_entry(context, source)}\n  to {target}")


@tool(effect="write")
def move_file(context: ToolContext, source: BlockPath, target: BlockPath) -> str:
    """Move or rename a file or folder within the workspace. Nothing is overwritten.

    Args:
        source: What to move.
        target: Its new path; its folder is created when it is missing.
    """
    with open_workspace(context) as folder:
        folder.stat(source)
        _prepare_target(folder, target)
        folder.rename(source, target)
    return f"Moved {source} to {target}."


@move_file.previewer
def _preview_move(context: ToolContext, source: str, target: str) -> ApprovalDetail:
    return preview("message", f"move {_describe_entry(context, source)}\n  to {target}")


@tool(effect="write")
def delete_file(context: ToolContext, path: BlockPath) -> str:
    """Delete a file or an empty folder of the workspace. It cannot be undone.

    Args:
        path: The file or folder, relative to the workspace.
    """
    with open_workspace(context) as folder:
        if folder.stat(path).kind == "folder":
            folder.rmdir(path)
        else:
            folder.unlink(path)
    return f"Deleted {path}."


@delete_file.previewer
def _preview_delete(context: ToolContext, path: str) -> ApprovalDetail:
    with open_workspace(context) as folder:
        entry = folder.stat(path)
        if entry.kind == "file" and entry.size <= _SHOWN:
            try:
                return diff_preview(path, read_whole(folder, path), None)
            except ToolError:  # it is no text
                pass
    return preview("message", f"delete {_describe_entry(context, path)}")


def _describe_entry(context: ToolContext, path: str) -> str:
    with open_workspace(context) as folder:
        entry = folder.stat(path)
    return (
        f"{path} ({entry.kind}, {entry.size} bytes, of {format_local_time(entry.modified_at, seconds=True)})"
    )


def _read_chunks(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _prepare_target(folder: Folder, target: str) -> None:
    """Make the folders on the way. Raises ToolError when something is at the target."""
    if folder.exists(target):
        raise ToolError(
            f"{target!r} exists already. Choose another name, or delete it first.", kind="conflict"
        )
    if parent := parent_path(target):
        folder.mkdir(parent)
