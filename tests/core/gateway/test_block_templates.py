"""A block begins with a template, shipped or the owner's own, and has a colour. A template that permits more than the
permissions of all blocks, or is not as expected, is refused with a sentence (MB-F26)."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.memory.files import ReadMemory
from trunkline.contracts.memory.subjects import MEMORY_READ
from trunkline.contracts.policies.messages import PermissionTable
from trunkline.workers.gateway.block_templates import BlockTemplates
from trunkline_bus import RemoteFault

from .conftest import Environment

pytestmark = pytest.mark.anyio

SHIPPED = ["archivist", "assistant", "coder", "researcher"]

GARDENER = """
summary = "Grows beans."
personality = "Patient, and fond of rain."
roles = "- Say when to sow."

[block]
description = "The garden"
goals = ["Beans"]
monitor_emoji = "🌱"
monitor_colour = "#2f7d32"

[block.permissions]
approvals = "all"
plan = true
"""


@pytest.fixture
async def templates(garden_env: Environment) -> AsyncIterator[Path]:
    """The owner's folder of templates, which is gone after the test."""
    folder = garden_env.platform.home.templates
    folder.mkdir()
    yield folder
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


async def identity_of(env: Environment, block: str) -> str:
    return (await env.bus.call(MEMORY_READ, ReadMemory(path=f"blocks/{block}/monitor.md"))).content


async def test_the_shipped_templates_can_be_used(garden_env: Environment) -> None:
    """Each has a summary, a purpose, an emoji, a colour and texts for the agent, and permits nothing more."""
    found = await garden_env.terminal.block_templates()
    assert [one.name for one in found] == SHIPPED
    for one in found:
        assert one.problem == "" and not one.is_own and one.summary and one.personality and one.roles, (
            one.name
        )
        assert one.config.description and one.config.monitor_emoji and one.config.monitor_colour, one.name
    over_http = (await garden_env.http.get("/api/block-templates")).json()["templates"]
    assert [one["name"] for one in over_http] == SHIPPED and all(one["problem"] == "" for one in over_http)


async def test_a_block_begins_with_a_template(garden_env: Environment, templates: Path) -> None:
    """The owner's own file counts without a restart: settings into ``block.toml``, texts into ``monitor.md``; what the
    request says counts more."""
    (templates / "gardener.toml").write_text(GARDENER, encoding="utf-8")
    body = {
        "name": "garden",
        "template": "gardener",
        "config": {"description": "Mine", "permissions": {"plan": False}},
    }
    created = await garden_env.http.post("/api/blocks", json=body)
    assert created.status_code == 201, created.text
    block = await garden_env.terminal.block("garden")
    assert block.config == BlockConfig(
        description="Mine",
        goals=("Beans",),
        monitor_emoji="🌱",
        monitor_colour="#2f7d32",
        permissions=PermissionTable(approvals="all", plan=False),
    )
    text = await identity_of(garden_env, "garden")
    assert "- Emoji: 🌱\n" in text
    assert "## Personality\n\nPatient, and fond of rain.\n\n## Roles\n\n- Say when to sow.\n" in text


async def test_an_own_template_takes_the_place_of_a_shipped_one(
    garden_env: Environment, templates: Path
) -> None:
    """A file of the same name in the home counts instead, also if it cannot be used: the shipped one is no fallback."""
    (templates / "coder.toml").write_text('summary = "My way."\n', encoding="utf-8")
    coder = {one.name: one for one in await garden_env.terminal.block_templates()}["coder"]
    assert coder.summary == "My way." and coder.is_own
    (templates / "coder.toml").write_text("summary = \n", encoding="utf-8")
    with pytest.raises(RemoteFault, match="coder"):
        await garden_env.terminal.create_block("garden", template="coder")


WIDER = {
    'permissions.scope = "workspace"': "permissions.scope",
    'permissions.scope = "system"': "permissions.scope",
    'permissions.approvals = "none"': "permissions.approvals",
    "permissions.allow_shell = true": "permissions.allow_shell",
    "permissions.allow_network = true": "permissions.allow_network",
    "permissions.max_timeout = 86400": "permissions.max_timeout",
    "memory.allow_user_global_write = true": "memory.allow_user_global_write",
    'memory.write_layers = ["user_global"]': "memory.write_layers",
}


@pytest.mark.parametrize("line", WIDER)
async def test_a_template_permits_nothing_more(tmp_path: Path, line: str) -> None:
    """Permissions beyond those of all blocks are a problem by name, and nothing of the file is used."""
    (tmp_path / "wide.toml").write_text(f'summary = "s"\nblock.{line}\n', encoding="utf-8")
    found = await BlockTemplates(tmp_path, PermissionTable()).list_templates()
    wide = {one.name: one for one in found}["wide"]
    assert f"block.{WIDER[line]} permits more" in wide.problem and wide.config == BlockConfig()


async def test_no_block_begins_with_a_wider_template(garden_env: Environment, templates: Path) -> None:
    """The refusal names the setting, and no block is created."""
    (templates / "wide.toml").write_text(
        'summary = "s"\nblock.permissions.scope = "system"\n', encoding="utf-8"
    )
    reply = await garden_env.http.post("/api/blocks", json={"name": "wider", "template": "wide"})
    assert reply.status_code == 400 and "block.permissions.scope permits more" in reply.text, reply.text
    assert "wider" not in {block.name for block in await garden_env.terminal.blocks()}
    await garden_env.terminal.create_block("garden")


async def test_the_permissions_of_the_platform_are_the_limit(tmp_path: Path) -> None:
    """Where the platform asks about every call, a template that asks about some is wider; where the platform lets
    agents run programs, a template may say so."""
    (tmp_path / "some.toml").write_text('summary = "s"\nblock.permissions.approvals = "some"\n')
    (tmp_path / "shell.toml").write_text('summary = "s"\nblock.permissions.allow_shell = true\n')
    strict = BlockTemplates(tmp_path, PermissionTable(approvals="all"))
    problems = {one.name: one.problem for one in await strict.list_templates() if one.is_own}
    assert "permissions.approvals" in problems["some"] and "permissions.allow_shell" in problems["shell"]
    lax = BlockTemplates(tmp_path, PermissionTable(allow_shell=True))
    assert {one.problem for one in await lax.list_templates()} == {""}


BROKEN = {
    "noise.toml": (b"summary = ", "Invalid value"),
    "typo.toml": (b'summary = "s"\nblock.goal = ["x"]\n', "goal"),
    "key.toml": (b'summary = "s"\nexec = "rm"\n', "exec"),
    "empty.toml": (b"", "summary"),
    "bytes.toml": (b"\xff\xfe", "it is not UTF-8"),
    "large.toml": (b"#" * 600_000, "it is too large"),
    "deep.toml": (b'summary = "s"\nblock.goals = ' + b"[" * 5000, "deep.toml"),
    "colour.toml": (b'summary = "s"\nblock.monitor_colour = "url(x)"\n', "A colour is one of red"),
    "Bad Name.toml": (b'summary = "s"\n', "small letters, digits"),
}


@pytest.mark.parametrize("file", BROKEN)
async def test_a_broken_file_is_refused_with_a_sentence(
    garden_env: Environment, templates: Path, file: str
) -> None:
    """It is listed with what is wrong, the others are there, and no block begins with it."""
    content, what = BROKEN[file]
    (templates / file).write_bytes(content)
    name = file.removesuffix(".toml")
    found = {one.name: one for one in await garden_env.terminal.block_templates()}
    assert what in found[name].problem and found[name].config == BlockConfig()
    assert sorted(found) == sorted([*SHIPPED, name])
    with pytest.raises(RemoteFault) as refused:
        await garden_env.terminal.create_block("garden", template=name)
    assert refused.value.code == "invalid_request"
    await garden_env.terminal.create_block("garden")


async def test_links_and_pipes_are_not_read(garden_env: Environment, templates: Path, tmp_path: Path) -> None:
    """A link could show any file of the owner, and a pipe would never end."""
    (tmp_path / "secret.toml").write_text('summary = "a secret"\n')
    (templates / "link.toml").symlink_to(tmp_path / "secret.toml")
    os.mkfifo(templates / "pipe.toml")
    (templates / "folder.toml").symlink_to(tmp_path)
    found = {one.name: one for one in await garden_env.terminal.block_templates() if one.is_own}
    assert "symbolic link" in found["link"].problem and found["link"].summary == ""
    assert "not a regular file" in found["pipe"].problem and found["folder"].problem
    await garden_env.terminal.create_block("garden")


@pytest.mark.parametrize("name", ["../../token", "/etc/passwd", "..", "coder.toml", "missing", "coder\0"])
async def test_a_name_is_no_path(garden_env: Environment, name: str) -> None:
    """Only the names of the list are templates."""
    reply = await garden_env.http.post("/api/blocks", json={"name": "wider", "template": name})
    assert reply.status_code == 400 and "There is no template" in reply.text, reply.text
    assert "archivist, assistant, coder, researcher" in reply.text


async def test_a_colour_is_a_name_or_hex(garden_env: Environment) -> None:
    """Over HTTP and the bus, at creation and as a change; anything else is refused and nothing is written."""
    body = {"name": "garden", "config": {"monitor_colour": "teal"}}
    created = await garden_env.http.post("/api/blocks", json=body)
    assert created.json()["config"]["monitor_colour"] == "teal"
    changed = await garden_env.terminal.change_block("garden", {"monitor_colour": "#A0b1C2"})
    assert changed.config.monitor_colour == "#A0b1C2"
    for wrong in ("Teal", "#abc", "#1234567", "red;x", "url(//evil)", ""):
        patch = {"config": {"monitor_colour": wrong}}
        reply = await garden_env.http.patch("/api/blocks/garden", json=patch)
        assert reply.status_code == 400 and "A colour is one of red" in reply.text, reply.text
        new = {"name": "wider", "config": {"monitor_colour": wrong}}
        assert (await garden_env.http.post("/api/blocks", json=new)).status_code == 400
    assert (await garden_env.terminal.block("garden")).config.monitor_colour == "#A0b1C2"
