"""Changing memory: ``memory_write``, ``memory_edit``, ``memory_delete``. Each is one committed change."""

from typing import Any

from trunkline import ToolContext, tool


@tool(effect="write")
async def memory_write(context: ToolContext, path: str, content: str) -> dict[str, Any]:
    """Write a whole file of memory; what was there before stays in history.

    Args:
        path: The file, relative to this block's memory; from / on relative to the whole memory.
        content: The whole new text.
    """
    return {"path": path, "hash": await context.memory.write(path, content)}


@tool(effect="write")
async def memory_edit(context: ToolContext, path: str, old_content: str, new_content: str) -> dict[str, Any]:
    """Replace a text in a file of memory by another, where it occurs first.

    Args:
        path: The file.
        old_content: The text to replace, exactly as it stands in the file.
        new_content: What to put in its place.
    """
    return {"path": path, "hash": await context.memory.edit(path, old_content, new_content)}


@tool(effect="write")
async def memory_delete(context: ToolContext, path: str) -> dict[str, Any]:
    """Delete a file or folder of memory; history keeps it.

    Args:
        path: The file or folder.
    """
    return {"path": path, "hash": await context.memory.delete(path)}
