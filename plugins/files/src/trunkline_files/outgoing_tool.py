"""Giving a file of the workspace to the person: ``send_file``. The workspace stays as it is."""

from functools import partial

import anyio.to_thread

from trunkline import BlockPath, ToolContext, ToolError, tool
from trunkline.api.tool import MAX_OUTGOING_BYTES
from trunkline_files.workspace import open_workspace


@tool(effect="read", timeout=120.0)
async def send_file(context: ToolContext, path: BlockPath) -> str:
    """Give the person a file of the workspace (at most 16 MB), such as a picture, a document or a table. It comes with
    your answer.

    Args:
        path: The file, relative to the workspace.
    """
    data = await anyio.to_thread.run_sync(partial(_read, context, path), abandon_on_cancel=True)
    file = await context.outgoing.add(path, data)
    return f"The person gets {file.name} ({file.size} bytes) with your answer."


def _read(context: ToolContext, path: str) -> bytes:
    """The content of the file at the path. Raises ToolError."""
    with open_workspace(context) as folder:
        if folder.stat(path).kind == "folder":
            raise ToolError(
                f"{path!r} is a folder. list_directory shows what is in it.", kind="invalid_arguments"
            )
        data = folder.read_bytes(path, limit=MAX_OUTGOING_BYTES + 1)
    if len(data) > MAX_OUTGOING_BYTES:
        limit = MAX_OUTGOING_BYTES // 1024 // 1024
        raise ToolError(f"{path!r} is larger than {limit} MB.", kind="too_large")
    return data
