"""Making, copying, moving and deleting: what stands where. Nothing here looks into a file."""

from collections.abc import Iterator
from typing import BinaryIO

from trunkline import ApprovalDetail, BlockPath, Folder, ToolContext, ToolError, diff_preview, preview, tool
from trunkline_files.text_files import whole
from trunkline_files.workspace import opened, parent_of

_PIECE = 1 << 20
_SHOWN = 200_000


@tool(effect="write", idempotent=True)
def create_directory(context: ToolContext, path: BlockPath) -> str:
    """Make a folder in the workspace, with those on the way; that it is there already is no error.

    Args:
        path: The folder, relative to the workspace.
    """
    with opened(context) as folder:
        if folder.exists(path) and folder.stat(path).kind != "folder":
            raise ToolError(f"{path!r} is a file already. Choose another name.", kind="conflict")
        folder.mkdir(path)
    return f"The folder {path} is there."


@tool(effect="write")
def copy_file(context: ToolContext, source: BlockPath, target: BlockPath) -> str:
    """Copy a file within the workspace. Nothing is overwritten.

    Args:
        source: The file to copy.
        target: The copy; its folder is made when it is absent.
    """
    with opened(context) as folder:
        entry = folder.stat(source)
        if entry.kind != "file":
            raise ToolError(
                f"{source!r} is a {entry.kind}. Only files can be copied.", kind="invalid_arguments"
            )
        with folder.open_read(source) as file:
            _make_room(folder, target)
            folder.write_atomic(target, _pieces(file))
    return f"Copied {source} to {target}."


@copy_file.shows
def _copied(context: ToolContext, source: str, target: str) -> ApprovalDetail:
    return preview("message", f"copy {_described(context, source)}\n  to {target}")


@tool(effect="write")
def move_file(context: ToolContext, source: BlockPath, target: BlockPath) -> str:
    """Move or rename a file or folder within the workspace. Nothing is overwritten.

    Args:
        source: What to move.
        target: Its new path; its folder is made when it is absent.
    """
    with opened(context) as folder:
        folder.stat(source)
        _make_room(folder, target)
        folder.rename(source, target)
    return f"Moved {source} to {target}."


@move_file.shows
def _moved(context: ToolContext, source: str, target: str) -> ApprovalDetail:
    return preview("message", f"move {_described(context, source)}\n  to {target}")


@tool(effect="write")
def delete_file(context: ToolContext, path: BlockPath) -> str:
    """Delete a file or an empty folder of the workspace. It cannot be undone.

    Args:
        path: The file or folder, relative to the workspace.
    """
    with opened(context) as folder:
        if folder.stat(path).kind == "folder":
            folder.rmdir(path)
        else:
            folder.unlink(path)
    return f"Deleted {path}."


@delete_file.shows
def _deleted(context: ToolContext, path: str) -> ApprovalDetail:
    with opened(context) as folder:
        entry = folder.stat(path)
        if entry.kind == "file" and entry.size <= _SHOWN:
            try:
                return diff_preview(path, whole(folder, path), None)
            except ToolError:  # it is no text
                pass
    return preview("message", f"delete {_described(context, path)}")


def _described(context: ToolContext, path: str) -> str:
    with opened(context) as folder:
        entry = folder.stat(path)
    return f"{path} ({entry.kind}, {entry.size} bytes, of {entry.modified_at:%Y-%m-%d %H:%M:%S} UTC)"


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _make_room(folder: Folder, target: str) -> None:
    """Make the folders on the way. Raises ToolError when something is at the target."""
    if folder.exists(target):
        raise ToolError(
            f"{target!r} is there already. Choose another name, or delete it first.", kind="conflict"
        )
    if parent := parent_of(target):
        folder.mkdir(parent)
