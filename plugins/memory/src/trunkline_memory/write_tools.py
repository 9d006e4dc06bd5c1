"""Changing memory: ``memory_write``, ``_edit``, ``_delete``, ``_revert``. Each is one committed change."""

from typing import Any

from trunkline import (
    ApprovalDetail,
    ErrorCode,
    MemoryPath,
    MemoryTree,
    RemoteFault,
    ToolContext,
    ToolError,
    diff_preview,
    tool,
)


@tool(effect="write", unbound_params=("content", "expected"))
async def memory_write(
    context: ToolContext, path: MemoryPath, content: str, expected: str | None = None
) -> dict[str, Any]:
    """Write a whole file of memory; what was there before stays in history.

    Args:
        path: The file, relative to this block's memory; from / on relative to the whole memory.
        content: The whole new text.
        expected: A hash from memory_history or an earlier change: refuses when the file was changed since.
            Empty: the file must be new.
    """
    known = await _expected_hash(context, path, expected)
    return {"path": path, "hash": await context.memory.write(path, content, expected=known)}


@memory_write.previewer
async def _preview_write(
    context: ToolContext, path: str, content: str, expected: str | None
) -> ApprovalDetail:
    return diff_preview(path, await _current_content(context, path), content)


@tool(effect="write", unbound_params=("old_content", "new_content", "expected"))
async def memory_edit(
    context: ToolContext, path: MemoryPath, old_content: str, new_content: str, expected: str | None = None
) -> dict[str, Any]:
    """Replace a text in a file of memory by another, where it occurs first.

    Args:
        path: The file.
        old_content: The text to replace, exactly as it stands in the file.
        new_content: What to put in its place.
        expected: A hash from memory_history or an earlier change: refuses when the file was changed since.
    """
    known = await _expected_hash(context, path, expected)
    version = await context.memory.edit(path, old_content, new_content, expected=known)
    return {"path": path, "hash": version}


@memory_edit.previewer
async def _preview_edit(
    context: ToolContext, path: str, old_content: str, new_content: str, expected: str | None
) -> ApprovalDetail:
    now = await _current_content(context, path) or ""
    return diff_preview(path, now, now.replace(old_content, new_content, 1) if old_content else now)


@tool(effect="write")
async def memory_delete(
    context: ToolContext, path: MemoryTree, expected: str | None = None
) -> dict[str, Any]:
    """Delete a file or folder of memory; history keeps it.

    Args:
        path: The file or folder.
        expected: A hash from memory_history or an earlier change: refuses when the file was changed since.
    """
    known = await _expected_hash(context, path, expected)
    return {"path": path, "hash": await context.memory.delete(path, expected=known)}


@memory_delete.previewer
async def _preview_delete(context: ToolContext, path: str, expected: str | None) -> ApprovalDetail:
    return diff_preview(path, await _current_content(context, path), None)


@tool(effect="write")
async def memory_revert(
    context: ToolContext, path: MemoryTree, commit: str | None = None, to: str | None = None
) -> dict[str, Any]:
    """Revert the last change of a file or folder of memory, as a new change.

    Args:
        path: The file or folder.
        commit: A hash from memory_history: reverts what that commit did to the path, instead of the last change.
        to: A hash from memory_history: restores the path as it was after that commit.
    """
    done = await context.memory.revert(path, commit, to=to)
    return {"paths": list(done.paths), "hash": done.version, "undone": done.undone}


async def _current_content(context: ToolContext, path: str) -> str | None:
    """Return the current content of the file; None when there is no file."""
    try:
        return (await context.memory.read(path)).content
    except ToolError as error:
        if isinstance(error.__cause__, RemoteFault) and error.__cause__.code == ErrorCode.NOT_FOUND:
            return None
        raise


async def _expected_hash(context: ToolContext, path: str, commit: str | None) -> str | None:
    """Return the hash of the file's content at a commit. The file must still have it."""
    return (await context.memory.read(path, commit)).hash if commit else commit
