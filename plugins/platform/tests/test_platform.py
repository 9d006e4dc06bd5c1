"""The platform's tools in a platform that runs."""

from pathlib import Path

import pytest

from trunkline.messages.memory import WriteMemory
from trunkline.messages.turn import ToolEnded
from trunkline.subjects import MEMORY_WRITE
from trunkline.testing.platform import platform

pytestmark = pytest.mark.anyio


async def test_blocks_are_listed_with_what_they_are_for(tmp_path: Path) -> None:
    """Each with its description, the asking one marked; one whose file is broken is listed all the same."""
    async with platform(tmp_path) as running:
        for name, text in (("garden", 'description = "Beds and\\n beans"'), ("broken", "= what")):
            path = f"blocks/{name}/block.toml"
            await running.bus.call(MEMORY_WRITE, WriteMemory(path=path, content=text, actor="owner"))
        ended = await running.say("/tool list_blocks")
        (told,) = [event.output for event in ended.events if isinstance(event, ToolEnded)]
        assert "garden: Beds and beans" in told and "main (you)" in told
        assert "broken: its block.toml cannot be read" in told
