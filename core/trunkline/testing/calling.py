"""Calls of tools as the monitor makes them, by tests that have no monitor."""

from typing import Any

import anyio

from trunkline.messages.memory import WriteManyMemory
from trunkline.messages.tools import CallTool, ToolOutcome
from trunkline.subjects import CALL_TOOL, MEMORY_WRITE_MANY
from trunkline_bus import Bus, new_id

PATIENCE = 100.0
SILENCE = 10.0
"""Seconds without a sign of life from the worker."""


async def call_tool(
    bus: Bus, name: str, arguments: dict[str, Any], *, block: str = "main", **more: Any
) -> ToolOutcome:
    """Call a tool and wait for its outcome. ``more`` are further fields of ``CallTool``, such as ``approved``.

    Raises:
        TimeoutError: there was no outcome in time.
    """
    made = {"call": new_id("call"), "conversation": "conv_1", "turn": "turn_1", "actor": "owner", **more}
    request = CallTool(name=name, arguments=arguments, block=block, **made)
    with anyio.fail_after(PATIENCE):
        async with bus.call_streaming(CALL_TOOL, request, idle_timeout=SILENCE) as replies:
            async for reply in replies:
                if isinstance(reply, ToolOutcome):
                    return reply
    raise TimeoutError(f"no outcome of {name}")


async def permit(bus: Bus, block: str = "main", **table: str | bool | float) -> None:
    """Write a block's table of permissions into memory, as its owner does. It may take a moment to count."""
    lines = [
        f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
        for name, value in table.items()
    ]
    files = {f"blocks/{block}/block.toml": "\n".join(["[permissions]", *lines, ""])}
    await bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=files, gone=(), actor="owner"))
