"""Calls of tools for tests without a monitor. They have the form in which the monitor sends them."""

from collections.abc import Mapping
from typing import Any

import anyio

from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.blocks.paths import block_file_path
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.tools.messages import CallTool, ToolOutcome
from trunkline.contracts.tools.subjects import CALL_DECIDED_TOOL, CALL_TOOL
from trunkline_bus import Bus, new_id

CALL_TIMEOUT = 100.0
IDLE_TIMEOUT = 10.0
"""Seconds without a heartbeat of the worker after which a call fails."""


async def call_tool(
    bus: Bus, name: str, arguments: dict[str, Any], *, block: str = "main", **more: Any
) -> ToolOutcome:
    """Call a tool and wait for its outcome. ``more`` are further fields of ``CallTool``, such as ``approved``.

    Raises:
        TimeoutError: no outcome arrived in time.
    """
    made = {"call": new_id("call"), "conversation": "conv_1", "turn": "turn_1", "actor": "owner", **more}
    request = CallTool(name=name, arguments=arguments, block=block, **made)
    endpoint = CALL_DECIDED_TOOL if request.has_decisions else CALL_TOOL
    with anyio.fail_after(CALL_TIMEOUT):
        async with bus.call_streaming(endpoint, request, idle_timeout=IDLE_TIMEOUT) as replies:
            async for reply in replies:
                if isinstance(reply, ToolOutcome):
                    return reply
    raise TimeoutError(f"no outcome of {name}")


async def assert_audited(bus: Bus, outcomes: Mapping[str, str], *, seconds: float = 60.0) -> None:
    """Assert that the audit log contains the end of each of these calls, given by their keys, with the status of the
    outcome. For an error, the log also records whether the call was stopped (``cancelled``).

    Raises:
        AssertionError: an entry is still missing after ``seconds``. The text names the calls.
    """
    missing = {*outcomes.items()}
    with anyio.move_on_after(seconds):
        while missing:
            lines = [stored.data async for stored in bus.history(AUDIT)]
            ended = (line for line in lines if line.event == "call")
            missing -= {(line.call, "error" if line.status == "cancelled" else line.status) for line in ended}
            if missing:
                await anyio.sleep(0.05)
    assert not missing, f"the audit log has no line of {sorted(missing)}"


async def write_permissions(bus: Bus, block: str = "main", **table: str | bool | float) -> None:
    """Write a block's permission table into memory, as the owner does. The workers may apply it with a short delay."""
    lines = [
        f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
        for name, value in table.items()
    ]
    files = {block_file_path(block): "\n".join(["[permissions]", *lines, ""])}
    await bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=files, gone=(), actor="owner"))
