"""Making, copying, moving and deleting: what stands where. Nothing here looks into a file."""

from trunkline import BlockPath, Folder, ToolContext, ToolError, tool
from trunkline_files.workspace import opened, parent_of

LARGEST_COPY = 100 * 1024 * 1024


@tool(effect="write", idempotent=True)
def create_directory(context: ToolContext, path: BlockPath) -> str:
    """Make a folder in the workspace, with those on the way; that it is there already is no error.

    Args:
        path: The folder, relative to the workspace.
    """
    with opened(context) as folder:
        if folder.exists(path) and folder.stat(path).kind != "folder":
            raise ToolError(f"{path!r} is a file already. Choose another name.")
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
            raise ToolError(f"{source!r} is a {entry.kind}. Only files can be copied.")
        if entry.size > LARGEST_COPY:
            raise ToolError(
                f"{source!r} is larger than {LARGEST_COPY // 1024 // 1024} MB, too large to be copied."
            )
        _make_room(folder, target)
        folder.write_atomic(target, folder.read_bytes(source))
    return f"Copied {source} to {target}."


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


def _make_room(folder: Folder, target: str) -> None:
    """Make the folders on the way. Raises ToolError when something is at the target."""
    if folder.exists(target):
        raise ToolError(f"{target!r} is there already. Choose another name, or delete it first.")
    if parent := parent_of(target):
        folder.mkdir(parent)
