"""The identity of the agent and of the owner, stored by tools in files that people read."""

from pathlib import Path
from typing import Any, cast

import pytest

from trunkline import Memory, ToolError
from trunkline.contracts.memory.initial_files import block_files
from trunkline.testing.contexts import tool_context
from trunkline_personality.identity import update_founder_info, update_monitor_identity

from .fake_memory import FakeMemory

pytestmark = pytest.mark.anyio


async def used(tool: Any, held: FakeMemory, **arguments: str) -> Any:
    return await tool(tool_context(Path(), memory=cast(Memory, held)), arguments)


async def test_name_and_emoji_are_set_and_nothing_else_changes() -> None:
    """This holds for a block's first file, one without such lines, and a missing one; a name cannot add a line."""
    held = FakeMemory(**{"monitor.md": block_files("garden", None, None)["monitor.md"]})
    await used(update_monitor_identity, held, name="Ada\n## Roles", emoji="🌱")
    text = held.files["monitor.md"]
    assert "- Name: Ada ## Roles\n- Emoji: 🌱\n- Block: garden" in text and text.count("\n## Roles\n") == 1
    await used(update_monitor_identity, held, name=r"\\1 \\g<0>")
    assert r"- Name: \\1 \\g<0>" in held.files["monitor.md"] and "- Emoji: 🌱" in held.files["monitor.md"]
    bare = FakeMemory(**{"monitor.md": "# Mine\n\nI am.\n"})
    await used(update_monitor_identity, bare, emoji="🌱")
    assert bare.files["monitor.md"] == "# Mine\n\nI am.\n\n## Identity\n\n- Emoji: 🌱\n"
    absent = FakeMemory()
    await used(update_monitor_identity, absent, name="Ada")
    assert "- Name: Ada" in absent.files["monitor.md"]


async def test_owner_facts_are_added_or_replaced() -> None:
    """They stay within the size that every agent can be shown."""
    held = FakeMemory(**{"/identity/USER.md": "# The owner\n\nLikes tea.\n"})
    await used(update_founder_info, held, info="Grows beans.")
    assert held.files["/identity/USER.md"] == "# The owner\n\nLikes tea.\n\nGrows beans.\n"
    await used(update_founder_info, held, info="Grows peas.", mode="rewrite")
    assert held.files["/identity/USER.md"] == "Grows peas.\n"
    for info in ("", " ", "x" * 9_000):
        with pytest.raises(ToolError, match="Nothing was changed"):
            await used(update_founder_info, held, info=info)
    for arguments in ({}, {"name": "x" * 70}, {"emoji": "x" * 20}):
        with pytest.raises(ToolError, match="Nothing was changed"):
            await used(update_monitor_identity, held, **arguments)
