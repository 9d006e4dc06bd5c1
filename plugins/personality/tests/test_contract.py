"""Each tool against the contract of tools."""

from pathlib import Path
from typing import cast

from trunkline import Memory, ToolContext
from trunkline.testing.contexts import tool_context
from trunkline.testing.tool_suite import ToolSuite
from trunkline_personality import identity, memory_tools, personality_tool

from .fake_memory import FakeMemory


class _Suite(ToolSuite):
    def context(self, workspace: Path) -> ToolContext:
        return tool_context(workspace, memory=cast(Memory, FakeMemory()))


TestMemory = _Suite.of(memory_tools.memory, action="add", text="Likes tea.")
TestBlockMemory = _Suite.of(memory_tools.block_memory, action="rewrite", text="The plan is to paint.")
TestPersonalitySet = _Suite.of(personality_tool.personality_set, command="Set humor to 80%")
TestMonitorIdentity = _Suite.of(identity.update_monitor_identity, name="Ada", emoji="🌱")
TestFounderInfo = _Suite.of(identity.update_founder_info, info="Likes tea.", mode="append")
