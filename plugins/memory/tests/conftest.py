"""Shared by the tests of the memory tools: a real memory worker, and a tool's context on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trunkline import ToolContext
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.testing.contexts import tool_context
from trunkline.testing.platform import Platform, platform
from trunkline_bus import Scope


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Platform]:
    async with platform(tmp_path / "home", workers=("memory",)) as found:
        yield found


@pytest.fixture
def context(running: Platform, tmp_path: Path) -> ToolContext:
    (tmp_path / "workspace").mkdir()
    scope = Scope(conversation="conv_test", turn="turn_test")
    return tool_context(tmp_path / "workspace", memory=block_memory(running.bus, "main", "agent", scope))
