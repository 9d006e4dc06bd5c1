"""``memory_export`` and ``memory_import``: everything that memory holds in one file, and such a file into memory."""

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio.to_thread

from trunkline import BlockPath, ToolContext, ToolError, tool
from trunkline.api.tool import error_kind_for_os

TIMEOUT = 900.0
MAX_REPORTED = 50
"""The largest number of conflicts and gaps in a report to a model; the owner's command prints all."""


@tool(effect="write", timeout=TIMEOUT)
async def memory_export(context: ToolContext) -> dict[str, Any]:
    """Write everything in memory with its whole history to a tar file in the workspace."""
    name = f"memory-export-{datetime.now(UTC):%Y%m%d-%H%M%S}-{context.call[-6:].lower()}.tar"
    size = await context.memory.export(context.workspace / name)
    return {"path": name, "size": size}


@tool(effect="write", timeout=TIMEOUT)
async def memory_import(
    context: ToolContext, path: BlockPath, system: str = "", dry_run: bool = False
) -> dict[str, Any]:
    """Import another memory into this one: an export of Trunkline, or the export archive of another system.

    Existing files stay, and conflicts are listed. Permissions are never changed.

    Args:
        path: The archive, in the workspace.
        system: The system it comes from, such as chatgpt or openclaw, when it is not recognised.
        dry_run: Only report what would be done.
    """
    with tempfile.TemporaryDirectory(prefix="memory-import-") as folder:
        copy = Path(folder) / Path(path).name
        await anyio.to_thread.run_sync(_copy, context, path, copy)
        done = await context.memory.import_archive(copy, kind=system or None, dry_run=dry_run)
    return {
        "system": done.system,
        "version": done.version,
        "added": done.added,
        "changed": done.changed,
        "joined": len(done.joined),
        "conflicts": [
            {"path": one.path, "what": one.what, "commit": one.version}
            for one in done.conflicts[:MAX_REPORTED]
        ],
        "gaps": [{"what": gap.what, "why": gap.why} for gap in done.gaps[:MAX_REPORTED]],
    }


def _copy(context: ToolContext, path: str, copy: Path) -> None:
    """Copy a file of the workspace, which may change while it is brought in. Raises ToolError."""
    try:
        with context.files() as workspace, workspace.open_read(path) as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target)
    except OSError as error:
        why = (error.strerror or "it failed").lower()
        raise ToolError(
            f"{path!r} cannot be read: {why}. Nothing was changed.", kind=error_kind_for_os(error)
        ) from error
