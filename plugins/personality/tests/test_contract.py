"""Each tool against the contract of tools."""

from pathlib import Path
from typing import Any, cast

from trunkline import Memory, Tool, ToolContext
from trunkline.testing.contexts import tool_context
from trunkline.testing.tool_suite import ToolSuite
from trunkline_personality import identity, memory_tools, personality_tool

from .held_memory import HeldMemory


class _Suite(ToolSuite):
    def context(self, workspace: Path) -> ToolContext:
        return tool_context(workspace, memory=cast(Memory, HeldMemory()))


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
