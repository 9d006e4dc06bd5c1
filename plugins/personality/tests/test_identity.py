"""Who the agent is and who the owner is, kept by tools in files that people read."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from trunkline import Memory, MemoryFile, ToolError
from trunkline.contracts.memory.initial_files import block_files
from trunkline.testing.contexts import tool_context
from trunkline_personality.identity import update_founder_info, update_monitor_identity

pytestmark = pytest.mark.anyio


class Held:
    """A memory that answers from this process."""

    def __init__(self, **files: str) -> None:
        self.files = {path.replace("__", "/"): text for path, text in files.items()}

    async def read(self, path: str, version: str | None = None) -> MemoryFile:
        if path not in self.files:
            raise ToolError("It is not there.")
        return MemoryFile(path=path, content=self.files[path], hash="0" * 40, modified_at=datetime.now(UTC))

    async def write(self, path: str, content: str, *, expected: str | None = None) -> str:
        self.files[path] = content
        return "1" * 40


async def used(tool: Any, held: Held, **arguments: str) -> Any:
    return await tool(tool_context(Path(), memory=cast(Memory, held)), arguments)


async def test_a_name_and_an_emoji_go_into_their_lines_and_nothing_else_changes() -> None:
    """In a block's first file, in one without such lines, in none; a name makes no line of its own."""
    held = Held(**{"monitor.md": block_files("garden", None, None)["monitor.md"]})
    await used(update_monitor_identity, held, name="Ada\n## Roles", emoji="🌱")
    text = held.files["monitor.md"]
    assert "- Name: Ada ## Roles\n- Emoji: 🌱\n- Block: garden" in text and text.count("\n## Roles\n") == 1
    await used(update_monitor_identity, held, name=r"\\1 \\g<0>")
    assert r"- Name: \\1 \\g<0>" in held.files["monitor.md"] and "- Emoji: 🌱" in held.files["monitor.md"]
    bare = Held(**{"monitor.md": "# Mine\n\nI am.\n"})
    await used(update_monitor_identity, bare, emoji="🌱")
    assert bare.files["monitor.md"] == "# Mine\n\nI am.\n\n## Identity\n\n- Emoji: 🌱\n"
    absent = Held()
    await used(update_monitor_identity, absent, name="Ada")
    assert "- Name: Ada" in absent.files["monitor.md"]


async def test_what_is_known_of_the_owner_is_added_or_put_in_place() -> None:
    """Within what every agent can be told."""
    held = Held(**{"/identity/USER.md": "# The owner\n\nLikes tea.\n"})
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
