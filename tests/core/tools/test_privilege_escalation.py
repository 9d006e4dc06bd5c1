"""An agent tries to lift its own limits, with every tool it has; nothing of it succeeds."""

from pathlib import Path
from typing import Any

import pytest

from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.tools.messages import ListTools, ToolOutcome
from trunkline.contracts.tools.subjects import LIST_TOOLS
from trunkline.testing.platform import Platform, platform
from trunkline.testing.tool_calls import call_tool

pytestmark = pytest.mark.anyio

OPEN = '[permissions]\nscope = "system"\nallow_shell = true\napprovals = "none"\n'
SYSTEM = '[permissions]\nscope = "system"\nallow_shell = false\napprovals = "none"\n'
GOD = '{"subject": "block:main", "resource": "*", "action": "*", "effect": "allow"}'
DENIAL = '{"subject": "*", "resource": "tool:delete_file", "action": "*", "effect": "deny"}'

TARGETS = [
    "/blocks/main/block.toml",
    "block.toml",
    "/policies/god.json",
    "/policies/no.json",
    "/audit/2026-11-22.jsonl",
]


async def call(running: Platform, name: str, **arguments: Any) -> ToolOutcome:
    return await call_tool(running.bus, name, arguments)


async def owner_writes(running: Platform, *gone: str, **files: str) -> None:
    named = {path.replace("__", "/").replace("_dot_", "."): text for path, text in files.items()}
    await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=named, gone=gone, actor="owner"))


def owned(memory: Path) -> dict[str, str]:
    """Return the files that only the owner may change, as they are on disk."""
    files = [*memory.glob("blocks/*/block.toml"), *memory.glob("policies/**/*")]
    return {str(file): file.read_text() for file in files if file.is_file()}


async def test_no_tool_lifts_a_limit(tmp_path: Path) -> None:
    """Memory's tools, the file tools with the scope of the whole system, links, moves, reverts, and an import of what
    was exported while more was permitted."""
    async with platform(tmp_path / "home", workers=("memory", "tools", "gateway")) as running:
        memory = running.home.memory
        await owner_writes(running, blocks__main__block_dot_toml=OPEN, policies__god_dot_json=GOD)
        archive = (await call(running, "memory_export")).output
        await owner_writes(
            running, "policies/god.json", blocks__main__block_dot_toml=SYSTEM, policies__no_dot_json=DENIAL
        )
        before = owned(memory)
        catalogue = await running.bus.call(LIST_TOOLS, ListTools(block="main"))
        names = {spec.name for spec in catalogue.tools or ()}
        assert {
            "memory_write",
            "memory_edit",
            "memory_delete",
            "memory_import",
            "write_file",
            "move_file",
        } <= names
        for target in TARGETS:
            refused = [
                await call(running, "memory_write", path=target, content=OPEN),
                await call(running, "memory_edit", path=target, old_content="false", new_content="true"),
                await call(running, "memory_delete", path=target),
                await call(running, "memory_revert", path=target),
            ]
            assert {outcome.status for outcome in refused} == {"error"}, refused
        await through_files(running, memory, tmp_path)
        name = archive.partition('"path":"')[2].partition('"')[0] or archive
        imported = await call(running, "memory_import", path=name)
        assert imported.status == "ok", imported.output
        assert owned(memory) == before
        assert "policy denies" in (await call(running, "delete_file", path="x")).output


async def through_files(running: Platform, memory: Path, far: Path) -> None:
    """The file tools, which reach the whole system except for closed paths."""
    home = running.home.path
    (far / "alias").symlink_to(home)
    await call(running, "write_file", path=f"{far}/open.toml", content=OPEN)
    assert (far / "open.toml").is_file(), "the scope itself works"
    places = [
        f"{memory}/blocks/main/block.toml",
        f"{far}/alias/memory/blocks/main/block.toml",
        f"{memory}/policies/god.json",
        f"{home}/trunkline.toml",
        f"{home}/workspaces/../trunkline.toml",
    ]
    for place in places:
        attempts = [
            await call(running, "write_file", path=place, content=OPEN),
            await call(running, "append_to_file", path=place, content=OPEN),
            await call(running, "replace_in_file", path=place, find="false", replace="true"),
            await call(running, "copy_file", source=f"{far}/open.toml", target=place),
            await call(running, "move_file", source=f"{far}/open.toml", target=place),
        ]
        assert {outcome.status for outcome in attempts} == {"error"}, place
    for folder in (memory, home, home.parent):
        moved = await call(running, "move_file", source=str(folder), target=f"{far}/gone")
        assert moved.status == "error"


async def test_a_denial_of_memory_holds_for_every_way_to_it(tmp_path: Path) -> None:
    """This covers reading, listing, searching, and operations on its parent folders or on all of memory."""
    deny = '{"subject": "block:main", "resource": "memory:/diary/private/*", "action": "*", "effect": "deny"}'
    async with platform(tmp_path / "home", workers=("memory", "tools", "gateway")) as running:
        await owner_writes(
            running,
            policies__diary_dot_json=deny,
            diary__private__a_dot_md="hidden tulips",
            diary__b_dot_md="tulips",
        )
        secret = "/diary/private/a.md"
        assert (await call(running, "memory_read", path="/diary/b.md")).status == "ok"
        for name, arguments in (
            ("memory_read", {"path": secret}),
            ("memory_read", {"path": "/diary/./private//a.md"}),
            ("memory_write", {"path": secret, "content": "x"}),
            ("memory_edit", {"path": secret, "old_content": "hidden", "new_content": "x"}),
            ("memory_delete", {"path": secret}),
            ("memory_delete", {"path": "/diary/private"}),
            ("memory_delete", {"path": "/diary"}),
            ("memory_export", {}),
        ):
            outcome = await call(running, name, **arguments)
            assert outcome.status == "error" and "may not be" in outcome.output, (name, outcome.output)
        listed = await call(running, "memory_list", path="/diary", recursive=True)
        assert "b.md" in listed.output and "private" not in listed.output
        found = await call(running, "memory_search", query="tulips", path="/")
        assert "diary/b.md" in found.output and "hidden" not in found.output
        assert (running.home.memory / "diary/private/a.md").read_text() == "hidden tulips"
