"""Changing what a file holds: ``write_file``, ``append_to_file``, ``replace_in_file``. On disk when they answer."""

from trunkline import ApprovalDetail, BlockPath, Folder, ToolContext, ToolError, diff_preview, tool
from trunkline_files.texts import counted, encoded, whole
from trunkline_files.workspace import opened, parent_of


@tool(effect="write", free=("content",), plan=True)
def write_file(context: ToolContext, path: BlockPath, content: str) -> str:
    """Write a whole text file into the workspace, making the folders on the way and replacing what was there.

    Args:
        path: The file, relative to the workspace.
        content: All that the file shall hold.
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
    now = _now(context, path)
    return diff_preview(path, now, (now or "") + content)


@tool(effect="write", free=("find", "replace"), plan=True)
def replace_in_file(context: ToolContext, path: BlockPath, find: str, replace: str, all: bool = False) -> str:
    """Replace a text in a file of the workspace. It must be there once, or all be given.

    Args:
        path: The file, relative to the workspace.
        find: The text to replace, exactly as it stands in the file, line ends and spaces included.
        replace: The text to put there.
        all: Whether to replace every place.
    """
    if not find:
        raise ToolError("The text to find is empty. Say what to replace.")
    with opened(context) as folder:
        text = whole(folder, path)
        count = text.count(find)
        if not count:
            raise ToolError(f"{path!r} does not hold that text{_hint(text, find)}. It is unchanged.")
        if count > 1 and not all:
            raise ToolError(
                f"{path!r} holds that text {count} times. Give more of what is around it, or all=true. It is unchanged."
            )
        folder.write_atomic(path, encoded(text.replace(find, replace)))
    return f"Replaced {counted(count, 'place')} in {path}."


@replace_in_file.shows
def _replaced(context: ToolContext, path: str, find: str, replace: str, all: bool) -> ApprovalDetail:
    now = _now(context, path) or ""
    return diff_preview(path, now, now.replace(find, replace) if find else now)


def _now(context: ToolContext, path: str) -> str | None:
    """What the file holds now; None when there is none."""
    with opened(context) as folder:
        return whole(folder, path) if folder.exists(path) else None


def _make_way(folder: Folder, path: str) -> None:
    """Make the folders on the way to a file, once its whole path is known to be allowed."""
    folder.exists(path)
    if parent := parent_of(path):
        folder.mkdir(parent)


def _hint(text: str, find: str) -> str:
    """Why a text that looks right is not found."""
    if find.strip() and find.strip() in text:
        return "; without the space around it, it does"
    if "".join(find.split()) in "".join(text.split()):
        return "; with other spaces or line ends, it does"
    return "; with other capitals, it does" if find.lower() in text.lower() else ""
