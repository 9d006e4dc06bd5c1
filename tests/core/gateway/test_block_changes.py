"""A block after its creation: its choices are changed, it is stopped and started, it forgets (MB-F23, F24)."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

import trunkline
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.conversations.messages import ListConversations, utc_now
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.memory.files import MemoryFile, ReadMemory, WriteMemory
from trunkline.contracts.memory.history import MemoryHistory
from trunkline.contracts.memory.subjects import MEMORY_HISTORY, MEMORY_READ, MEMORY_WRITE
from trunkline.contracts.policies.messages import PermissionTable
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.block_file import KEYS, UnknownSettingError, apply_changes, parse_value
from trunkline.workers.gateway.http.schemas.block_schemas import BlockState
from trunkline_bus import RemoteFault

from .conftest import Environment, started_environment, until
from .test_blocks import talk

pytestmark = pytest.mark.anyio

FILE = "blocks/garden/block.toml"

WRITTEN = """# Made on 2026-01-01T00:00:00+00:00.
# The garden is by the house.
description = "The garden"  # short

goals = [
  "Tomatoes",  # red ones
  "Beans",
]
model = "openai/gpt-5"

# It may look, and nothing else.
[permissions]
approvals = "some"  # for now
"""


async def write(env: Environment, text: str, path: str = FILE) -> None:
    """Write as a person does."""
    await env.bus.call(MEMORY_WRITE, WriteMemory(path=path, content=text, actor="owner"))


async def text_of(env: Environment, path: str = FILE) -> str:
    return (await env.bus.call(MEMORY_READ, ReadMemory(path=path))).content


async def test_choices_are_changed_and_comments_stay(garden_env: Environment) -> None:
    """Over the bus: each line that is not about it stays as it was, and the change is a commit of the owner's."""
    await garden_env.terminal.create_block("garden")
    await write(garden_env, WRITTEN)
    block = await garden_env.terminal.change_block(
        "garden",
        {"model": "offline", "permissions.approvals": "all", "tools": ["memory_read"], "goals": None},
    )
    assert block.config == BlockConfig(
        description="The garden",
        model="offline",
        tools=("memory_read",),
        permissions=PermissionTable(approvals="all"),
    )
    assert await garden_env.terminal.block("garden") == block
    text = await text_of(garden_env)
    assert text.startswith("# Made on 2026-01-01T00:00:00+00:00.\n# The garden is by the house.\n")
    assert 'description = "The garden"  # short' in text
    assert '# It may look, and nothing else.\n[permissions]\napprovals = "all"  # for now' in text
    assert "goals" not in text and block.created_at.year == 2026
    history = await garden_env.bus.call(MEMORY_HISTORY, MemoryHistory(path=FILE, limit=1))
    change = history.changes[0]
    assert change.author == "channel:terminal" and "model, permissions.approvals" in change.message


async def test_changes_of_a_blocks_permissions_are_audited(own_env: Environment) -> None:
    """A change of permissions is noted with who made it, one of the model is not."""
    await own_env.terminal.create_block("garden")
    await own_env.terminal.change_block("garden", {"model": "x"})
    await own_env.http.patch("/api/blocks/garden", json={"config": {"permissions": {"scope": "workspace"}}})

    async def noted() -> bool:
        lines = [stored.data async for stored in own_env.bus.history(AUDIT)]
        found = [(line.event, line.block, line.actor) for line in lines]
        return found == [("permissions", "garden", "owner")] and "workspace" in lines[0].why

    await until(noted)


async def test_a_merge_patch_over_http(env: Environment) -> None:
    """``PATCH``: null removes a key, unnamed keys stay, and the reply is the resulting block."""
    await env.terminal.create_block("patched", BlockConfig(description="d", goals=("a",), model="m"))
    request = {
        "config": {"model": None, "goals": ["b", "c"], "permissions": {"plan": True, "max_timeout": 9}}
    }
    response = await env.http.patch("/api/blocks/patched", json=request)
    assert response.status_code == 200, response.text
    state = msgspec.json.decode(response.content, type=BlockState)
    assert state.config == BlockConfig(
        description="d", goals=("b", "c"), permissions=PermissionTable(plan=True, max_timeout=9.0)
    )
    response = await env.http.patch("/api/blocks/patched", json={"config": {"permissions": None}})
    assert msgspec.json.decode(response.content, type=BlockState).config.permissions == PermissionTable()


@pytest.mark.parametrize(
    ("config", "field", "said"),
    [
        ({"modell": "x"}, "/config/modell", "Did you mean model?"),
        ({"approvals": "all"}, "/config/approvals", "Did you mean permissions.approvals?"),
        ({"enabled": "no"}, "/config/enabled", "Expected `bool`"),
        ({"enabled": 1}, "/config/enabled", "Expected `bool`"),
        ({"tools": "memory_read"}, "/config/tools", "Expected `array"),
        ({"permissions": {"approvals": "never"}}, "/config/permissions/approvals", "all, some, none"),
        ({"permissions": {"max_timeout": -1}}, "/config/permissions/max_timeout", "0.0"),
        ({"permissions": {"root": True}}, "/config/permissions/root", "No block has this key"),
        ({"permissions": "all"}, "/config/permissions", "No block has this key"),
        ({"permissions": {}}, "/config/permissions", "No block has this key"),
        ({"memory": {"retention_days": 0}}, "/config/memory/retention_days", ">= 1"),
        ({"model": "ok", "goals": {"a": 1}}, "/config/goals/a", "No block has this key"),
    ],
)
async def test_invalid_block_settings_are_refused(
    env: Environment, config: dict[str, Any], field: str, said: str
) -> None:
    """The reader of ``block.toml`` decides, the field is named, and nothing of it is written."""
    if "strict" not in [block.name for block in await env.terminal.blocks()]:
        await env.terminal.create_block("strict")
    before = await text_of(env, "blocks/strict/block.toml")
    response = await env.http.patch("/api/blocks/strict", json={"config": config})
    assert response.status_code == 400, response.text
    reported = response.json()["metadata"]
    assert reported["field"] == field and said in reported["reason"]
    assert await text_of(env, "blocks/strict/block.toml") == before


async def test_a_file_that_cannot_be_read_is_not_overwritten(garden_env: Environment) -> None:
    """It is refused with file and line, byte for byte as a person left it; also by stop, start and reset."""
    await garden_env.terminal.create_block("garden")
    broken = '# mine\ndescription = "x"\nenabled = perhaps\n'
    await write(garden_env, broken)
    changes = (
        lambda: garden_env.terminal.change_block("garden", {"model": "m"}),
        lambda: garden_env.terminal.stop_block("garden"),
        lambda: garden_env.terminal.change_block("garden", {"enabled": None}),
        lambda: garden_env.terminal.reset_block("garden", hard=True),
    )
    for change in changes:
        with pytest.raises(RemoteFault, match=r"blocks/garden/block\.toml.*line 3") as refused:
            await change()
        assert refused.value.code == ErrorCode.CONFLICT
        assert await text_of(garden_env) == broken
    shown = (await garden_env.http.get("/api/blocks/garden")).json()
    assert "line 3" in shown["problem"]


async def test_stop_and_start(garden_env: Environment) -> None:
    """A stopped block accepts no messages and names the way to start it; its file says so, and a start removes that
    again."""
    await garden_env.terminal.create_block("garden", BlockConfig(description="d"))
    before = await text_of(garden_env)
    response = await garden_env.http.post("/api/blocks/garden/stop")
    assert response.status_code == 200 and response.json()["config"]["enabled"] is False
    with pytest.raises(RemoteFault, match="trunkline blocks start garden") as refused:
        await garden_env.terminal.send(SendMessage(content="hi", block="garden"))
    assert refused.value.code == ErrorCode.CONFLICT
    assert tomllib.loads(await text_of(garden_env))["enabled"] is False
    assert (await garden_env.http.post("/api/blocks/garden/stop")).status_code == 200, "twice is once"
    assert (await garden_env.http.post("/api/blocks/garden/start")).status_code == 200
    assert await text_of(garden_env) == before
    await talk(garden_env, "hi", block="garden")
    assert (await garden_env.http.post("/api/blocks/desert/stop")).status_code == 404
    assert (await garden_env.http.post("/api/blocks/desert/start")).status_code == 404


async def test_a_renamed_block_has_the_name_in_its_identity(garden_env: Environment) -> None:
    """The agent reads ``monitor.md``: a name that only the settings knew would have no effect."""
    await garden_env.terminal.create_block("garden", BlockConfig(monitor_name="Rose"))
    monitor = "blocks/garden/monitor.md"
    await write(garden_env, (await text_of(garden_env, monitor)) + "\nShe likes roses.\n", monitor)
    await garden_env.terminal.change_block(
        "garden", {"monitor_name": "Iris\n- Role: root", "monitor_emoji": "🌱"}
    )
    text = await text_of(garden_env, monitor)
    assert "- Name: Iris - Role: root\n- Emoji: 🌱\n" in text and "She likes roses." in text
    await garden_env.terminal.change_block("garden", {"monitor_name": None})
    assert "- Name: (not set)\n" in await text_of(garden_env, monitor)


async def fill(env: Environment) -> Path:
    """Give the block garden something of each kind; returns its workspace."""
    await env.terminal.create_block("garden", BlockConfig(description="d", monitor_name="Rose"))
    await talk(env, "plant", block="garden")
    for path in (
        "memory.md",
        "notes/a.md",
        "plans/p.json",
        "documents/book.md",
        "monitor.md",
        "sliders.json",
    ):
        await write(env, "{}\n", f"blocks/garden/{path}")
    workspace = env.platform.home.workspace("garden")
    workspace.mkdir(parents=True)
    (workspace / "a.txt").write_text("x")
    return workspace


async def test_reset_deletes_conversations_and_keeps_documents(garden_env: Environment) -> None:
    """Conversations and files written by the agent are deleted; the owner's files, identity and workspace are not."""
    workspace = await fill(garden_env)
    choices = await text_of(garden_env)
    response = await garden_env.http.post("/api/blocks/garden/reset")
    assert response.status_code == 200 and response.json()["conversations"] == 0, response.text
    folder = garden_env.platform.home.memory / "blocks" / "garden"
    kept = {path.name for path in folder.iterdir()}
    assert kept == {"block.toml", "monitor.md", "memory.md", "documents", "sliders.json"}
    assert "Rose remembers" in await text_of(garden_env, "blocks/garden/memory.md")
    assert await text_of(garden_env, "blocks/garden/monitor.md") == "{}\n"
    assert await text_of(garden_env) == choices and (workspace / "a.txt").is_file()
    page = await garden_env.terminal.conversations(ListConversations(block="garden"))
    assert page.total == 0
    await talk(garden_env, "again", block="garden")


async def test_a_hard_reset_keeps_block_settings(garden_env: Environment) -> None:
    """Only the settings in ``block.toml`` stay, without the deleted name; a second hard reset changes nothing."""
    workspace = await fill(garden_env)
    for _ in range(2):
        block = await garden_env.terminal.reset_block("garden", hard=True)
        assert block.config == BlockConfig(description="d") and block.conversations == 0
        folder = garden_env.platform.home.memory / "blocks" / "garden"
        assert {path.name for path in folder.iterdir()} == {"block.toml", "monitor.md", "memory.md"}
        assert "- Name: (not set)" in await text_of(garden_env, "blocks/garden/monitor.md")
        assert not workspace.exists()


class Guests:
    """Lets a guest in, who is not the owner."""

    name = "guests"

    async def __call__(self, headers: Mapping[str, str]) -> Identity | None:
        return Identity(id="guest", type="system_agent") if headers.get("x-guest") == "yes" else None

    @trunkline.hookimpl
    def trunkline_authenticators(self) -> list[Any]:
        return [self]


CHANGES: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/api/blocks", {"name": "mine", "config": {"permissions": {"approvals": "none"}}}),
    ("PATCH", "/api/blocks/main", {"config": {"permissions": {"approvals": "none", "scope": "system"}}}),
    ("POST", "/api/blocks/main/start", None),
    ("POST", "/api/blocks/main/stop", None),
    ("POST", "/api/blocks/main/reset", {"hard": True}),
    ("POST", "/api/blocks/main/archive", None),
    ("POST", "/api/blocks/main/restore", None),
    ("DELETE", "/api/blocks/main", None),
)


async def test_only_the_owner_changes_a_block() -> None:
    """The status is 401 without the token, and 403 for another person, on every route that changes a block; and
    nothing is changed."""
    async with started_environment(Guests()) as env:
        before = await text_of(env, "blocks/main/block.toml")
        async with httpx.AsyncClient(base_url=env.url, timeout=60) as stranger:
            for method, path, body in CHANGES:
                assert (await stranger.request(method, path, json=body)).status_code == 401
                refused = await stranger.request(method, path, json=body, headers={"x-guest": "yes"})
                assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), path
        assert [block.name for block in await env.terminal.blocks()] == ["main"]
        assert await text_of(env, "blocks/main/block.toml") == before


@pytest.mark.parametrize(
    ("key", "words", "meant"),
    [
        ("description", ["a, b"], "a, b"),
        ("description", ["true"], "true"),
        ("description", ["[x"], "[x"),
        ("enabled", ["false"], False),
        ("goals", ["a, b"], ("a, b",)),
        ("goals", ["a", "b"], ("a", "b")),
        ("goals", ["a", "a"], ("a", "a")),
        ("goals", ['["a", "b"]'], ("a", "b")),
        ("tools", [""], ()),
        ("permissions.approvals", ["none"], "none"),
        ("permissions.max_timeout", ["30"], 30.0),
        ("enabled", ["perhaps"], "perhaps"),
        ("model", ["a", "b"], ["a", "b"]),
        ("nothing", ["x"], "x"),
    ],
)
async def test_setting_values_are_parsed_from_text(key: str, words: list[str], meant: Any) -> None:
    """The text after ``KEY=`` is converted to the key's type. Text that does not convert is passed on, and refused
    with the key's name."""
    assert parse_value(key, words) == meant


def test_every_key_of_the_file_can_be_set() -> None:
    """A new field of ``BlockConfig`` is one without more being done."""
    assert {key.partition(".")[0] for key in KEYS} == set(BlockConfig.__struct_fields__)


def test_models_of_purposes_are_set_by_key_and_the_former_key_moves() -> None:
    """Other purposes stay; ``vision_model`` of an older file becomes ``models.vision`` with the first change, so that
    there is one place. A purpose that looks like a typing error is refused, and nothing is written."""
    content = 'vision_model = "a/old"\n# mine\n[models]\nsummary = "a/s"\n'
    old = MemoryFile(path=FILE, content=content, hash="h", modified_at=utc_now())
    text = apply_changes(old, {"models.learn": "a/l"})
    assert tomllib.loads(text) == {"models": {"summary": "a/s", "learn": "a/l", "vision": "a/old"}}
    assert "# mine" in text
    assert tomllib.loads(apply_changes(old, {"vision_model": "a/new"}))["models"]["vision"] == "a/new"
    assert "vision" not in tomllib.loads(apply_changes(old, {"models.vision": None}))["models"]
    for wrong in ("models.sumary", "models.chat", "models.a.b"):
        with pytest.raises(UnknownSettingError):
            apply_changes(old, {wrong: "a/x"})
    assert parse_value("models.summary", ["a/b"]) == "a/b"
