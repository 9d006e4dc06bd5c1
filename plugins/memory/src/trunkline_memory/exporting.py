"""``memory_export``: everything that memory holds, in one file that needs no Trunkline to be read."""

from datetime import UTC, datetime
from typing import Any

from trunkline import ToolContext, tool

TIMEOUT = 900.0


@tool(effect="write", timeout=TIMEOUT)
async def memory_export(context: ToolContext) -> dict[str, Any]:
    """Write everything in memory with its whole history to a tar file in the workspace."""
    name = f"memory-export-{datetime.now(UTC):%Y%m%d-%H%M%S}-{context.call[-6:].lower()}.tar"
    size = await context.memory.export(context.workspace / name)
    return {"path": name, "size": size}
