"""Each tool against the contract of tools."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from trunkline import Memory, MemoryFile, Tool, ToolContext, ToolError
from trunkline.testing.contexts import tool_context
from trunkline.testing.tool_suite import ToolSuite
from trunkline_personality import identity, memory_tools, personality_tool


class Held:
    """A memory that answers from this process."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    async def read(self, path: str, version: str | None = None) -> MemoryFile:
        if path not in self.files:
            raise ToolError("It is not there.")
        return MemoryFile(path=path, content=self.files[path], hash="0" * 40, modified_at=datetime.now(UTC))

    async def write(self, path: str, content: str, *, expected: str | None = None) -> str:
        self.files[path] = content
        return "1" * 40


class _Suite(ToolSuite):
    def context(self, workspace: Path) -> ToolContext:
        return tool_context(workspace, memory=cast(Memory, Held()))


class TestMemory(_Suite):
    def tool(self) -> Tool:
        return memory_tools.memory

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"action": "add", "text": "Likes tea."}


class TestBlockMemory(_Suite):
    def tool(self) -> Tool:
        return memory_tools.block_memory

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"action": "rewrite", "text": "The plan is to paint."}


class TestPersonalitySet(_Suite):
    def tool(self) -> Tool:
        return personality_tool.personality_set

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"command": "Set humor to 80%"}


class TestMonitorIdentity(_Suite):
    def tool(self) -> Tool:
        return identity.update_monitor_identity

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"name": "Ada", "emoji": "🌱"}


class TestFounderInfo(_Suite):
    def tool(self) -> Tool:
        return identity.update_founder_info

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"info": "Likes tea.", "mode": "append"}
