"""Shared by the tests of the memory tools: a real memory worker for a module, and a tool's context on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trunkline import ToolContext
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.testing.contexts import tool_context
from trunkline.testing.platform import BLOCK, Platform, make_block, platform
from trunkline_bus import Scope, new_id


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    async with platform(tmp_path_factory.mktemp("memory"), workers=("memory",)) as found:
        yield found


@pytest.fixture
def context(running: Platform, tmp_path: Path) -> ToolContext:
    """The context of a tool in a block of its own."""
    block = new_id().lower()
    make_block(running.home.memory, ("memory",), block)
    return context_in(running, block, tmp_path)


@pytest.fixture
def main_context(running: Platform, tmp_path: Path) -> ToolContext:
    """The context of a tool in the block ``main``, for a test that changes nothing which others read."""
    return context_in(running, BLOCK, tmp_path)


def context_in(running: Platform, block: str, folder: Path) -> ToolContext:
    workspace = folder / "workspace"
    workspace.mkdir()
    scope = Scope(conversation="conv_test", turn="turn_test")
    return tool_context(workspace, memory=block_memory(running.bus, block, "agent", scope), block=block)
