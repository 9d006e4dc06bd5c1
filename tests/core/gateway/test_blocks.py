"""Blocks over HTTP and the bus: created, shown, archived, restored byte for byte, deleted (MB-F1..F5, F29)."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from trunkline.contracts.blocks.messages import (
    BlockConfig,
    BlockStatus,
    BlockStatusHeartbeat,
    BlockStatusName,
)
from trunkline.contracts.conversations.messages import AppendConversation, Message
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.gateway.subjects import STORE_MESSAGES
from trunkline.contracts.memory.files import ReadMemory, WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_READ, MEMORY_WRITE
from trunkline.contracts.turns.feed_reader import FeedReader
from trunkline.contracts.workers.subjects import PULSE_BUCKET
from trunkline.errors import ErrorCode
from trunkline.workers.gateway import block_stopper
from trunkline.workers.gateway.blocks import merge_pulses
from trunkline.workers.gateway.http.schemas.block_schemas import BlockState, BlockStates
from trunkline.workers.gateway.http.schemas.schema_base import Error
from trunkline_bus import RemoteFault

from .conftest import Environment

pytestmark = pytest.mark.anyio


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file below a folder with the hash of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


async def talk(env: Environment, text: str, **given: str) -> str:
    """Have a turn, and return its conversation."""
    accepted = await env.terminal.send(SendMessage(content=text, **given))
    async for _ in FeedReader(env.bus, accepted.conversation, accepted.turn):
        pass
    return accepted.conversation


async def test_the_default_block_is_there(own_env: Environment) -> None:
    """A fresh home has one block, and messages that name none go there."""
    assert [block.name for block in await own_env.terminal.blocks()] == ["main"]
    await talk(own_env, "hi")
    assert own_env.monitor.requests[0].block == "main"
    assert (await own_env.terminal.block("main")).conversations == 1


async def test_a_block_is_made_and_shown(garden_env: Environment) -> None:
    """Over HTTP: made with its choices, listed by name, shown, and made no second time."""
    config = {"description": "The garden", "goals": ["tomatoes"], "model": "offline", "monitor_name": "Rose"}
    response = await garden_env.http.post("/api/blocks", json={"name": "garden", "config": config})
    assert response.status_code == 201
    made = msgspec.json.decode(response.content, type=BlockState)
    assert made.config == BlockConfig(
        description="The garden", goals=("tomatoes",), model="offline", monitor_name="Rose"
    )
    assert (made.status, made.conversations) == ("SLEEPING", 0)
    assert abs((datetime.now(UTC) - made.created_at).total_seconds()) < 60
    listed = msgspec.json.decode((await garden_env.http.get("/api/blocks")).content, type=BlockStates)
    assert [block.name for block in listed.blocks] == ["garden", "main"]
    assert (
        msgspec.json.decode((await garden_env.http.get("/api/blocks/garden")).content, type=BlockState)
        == made
    )
    again = await garden_env.http.post("/api/blocks", json={"name": "garden"})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert again.json()["metadata"]["reason"] == "There is a block called 'garden' already."
    file = await garden_env.bus.call(MEMORY_READ, ReadMemory(path="blocks/garden/monitor.md"))
    assert "Rose" in file.content


@pytest.mark.parametrize(
    "name", ["", "Garden", "-x", "a" * 33, "a b", "../x", "a/b", "ä", "x\n", ".archive", "a_b", "*"]
)
async def test_bad_names_are_refused(env: Environment, name: str) -> None:
    """The name rule of MB-F3; nothing is made."""
    response = await env.http.post("/api/blocks", json={"name": name})
    assert response.status_code == 400
    assert msgspec.json.decode(response.content, type=Error).code == "invalid_request"
    with pytest.raises(RemoteFault) as refused:
        await env.terminal.create_block(name)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    assert "small letters" in refused.value.message
    with pytest.raises(RemoteFault) as unknown:
        await env.terminal.send(SendMessage(content="hi", block=name or "none"))
    assert unknown.value.code == ErrorCode.NOT_FOUND


async def test_unknown_choices_are_refused(env: Environment) -> None:
    """A choice that no block has is a mistake, not something to pass over."""
    response = await env.http.post("/api/blocks", json={"name": "x", "config": {"modell": "y"}})
    assert response.status_code == 400


async def test_archive_and_restore_bring_back_every_byte(garden_env: Environment) -> None:
    """Conversations, memory and the workspace are archived together and restored unchanged."""
    await garden_env.terminal.create_block("garden")
    conversation = await talk(garden_env, "plant", block="garden")
    write = WriteMemory(path="blocks/garden/notes/ü.md", content="söl\r\n\x07", actor="test")
    await garden_env.bus.call(MEMORY_WRITE, write)
    home = garden_env.platform.home
    workspace = home.workspace("garden")
    (workspace / "deep").mkdir(parents=True)
    (workspace / "deep" / "bytes.bin").write_bytes(bytes(range(256)))
    before = fingerprint(home.memory / "blocks" / "garden"), fingerprint(workspace)
    assert before[0]

    assert (await garden_env.http.post("/api/blocks/garden/archive")).status_code == 204
    assert not workspace.exists()
    assert not (home.memory / "blocks" / "garden").exists()
    found = await garden_env.terminal.block_list(archived=True)
    assert [block.name for block in found.blocks] == ["main"]
    assert [(one.name, one.archive.startswith("garden_20")) for one in found.archived] == [("garden", True)]
    with pytest.raises(RemoteFault) as gone:
        await garden_env.terminal.send(SendMessage(content="hi", block="garden"))
    assert gone.value.code == ErrorCode.NOT_FOUND
    assert (await garden_env.http.get(f"/conversations/{conversation}")).status_code == 404

    assert (await garden_env.http.post("/api/blocks/garden/restore")).status_code == 200
    assert (fingerprint(home.memory / "blocks" / "garden"), fingerprint(workspace)) == before
    assert (await garden_env.terminal.block_list(archived=True)).archived == ()
    await talk(garden_env, "again", conversation=conversation)
    messages = (await garden_env.terminal.conversation(conversation)).messages
    assert [message.content for message in messages][0::2] == ["plant", "again"]


async def test_restore_needs_a_free_name_and_an_archive(garden_env: Environment) -> None:
    """An existing block is a conflict, and a block that was never archived is not found. The newest archive is
    restored."""
    await garden_env.terminal.create_block("garden", BlockConfig(description="old"))
    await garden_env.terminal.archive_block("garden")
    await garden_env.terminal.create_block("garden", BlockConfig(description="new"))
    with pytest.raises(RemoteFault) as taken:
        await garden_env.terminal.restore_block("garden")
    assert taken.value.code == ErrorCode.CONFLICT
    await garden_env.terminal.archive_block("garden")
    assert (await garden_env.terminal.restore_block("garden")).config.description == "new"
    with pytest.raises(RemoteFault) as unknown:
        await garden_env.terminal.restore_block("desert")
    assert unknown.value.code == ErrorCode.NOT_FOUND


async def test_an_unused_default_block_makes_room_for_its_archive(own_env: Environment) -> None:
    """A start creates the default block again after it was archived. The archive takes the place of that empty block,
    and not of one that somebody used, changed or put files into.
    """
    conversation = await talk(own_env, "keep me", block="main")
    await own_env.terminal.archive_block("main")
    await own_env.terminal.create_block("main")  # as a start does
    file = own_env.platform.home.workspace("main") / "mine.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    with pytest.raises(RemoteFault, match="blocks delete main"):
        await own_env.terminal.restore_block("main")
    file.unlink()
    await own_env.terminal.change_block("main", {"description": "changed"})
    with pytest.raises(RemoteFault, match="blocks delete main"):
        await own_env.terminal.restore_block("main")
    await own_env.terminal.change_block("main", {"description": None})
    await own_env.terminal.restore_block("main")
    assert (await own_env.terminal.conversation(conversation)).messages[0].content == "keep me"
    assert (await own_env.terminal.block_list(archived=True)).archived == ()


async def test_delete(garden_env: Environment) -> None:
    """A block goes with its workspace, an archive without touching the block; memory's history keeps the text."""
    await garden_env.terminal.create_block("garden")
    await garden_env.terminal.archive_block("garden")
    await garden_env.terminal.create_block("garden")
    workspace = garden_env.platform.home.workspace("garden")
    workspace.mkdir(parents=True)
    assert (
        await garden_env.http.delete("/api/blocks/garden", params={"archived": "true"})
    ).status_code == 204
    assert workspace.is_dir()
    assert (await garden_env.terminal.block_list(archived=True)).archived == ()
    assert (await garden_env.http.delete("/api/blocks/garden")).status_code == 204
    assert not workspace.exists()
    assert (await garden_env.http.get("/api/blocks/garden")).status_code == 404
    assert (await garden_env.http.delete("/api/blocks/garden")).status_code == 404
    assert (await garden_env.http.delete("/api/blocks/garden?archived=perhaps")).status_code == 400


async def test_a_block_is_not_deleted_while_its_turns_run(
    own_env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is removed under a running turn: if it does not end, the block stays, and accepts messages again."""
    monkeypatch.setattr(block_stopper, "STOP_TIMEOUT", 0.5)
    own_env.monitor.paused = True
    await own_env.terminal.send(SendMessage(content="hi"))
    for refused in (
        await own_env.http.post("/api/blocks/main/archive"),
        await own_env.http.post("/api/blocks/main/reset"),
        await own_env.http.delete("/api/blocks/main"),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert [block.name for block in await own_env.terminal.blocks()] == ["main"]
    own_env.monitor.paused = False
    await talk(own_env, "again")


async def test_a_disabled_block_accepts_no_messages(garden_env: Environment) -> None:
    """``enabled = false`` in its file refuses messages, and works at once."""
    await garden_env.terminal.create_block("garden", BlockConfig(enabled=False))
    with pytest.raises(RemoteFault, match="switched off") as refused:
        await garden_env.terminal.send(SendMessage(content="hi", block="garden"))
    assert refused.value.code == ErrorCode.CONFLICT
    write = WriteMemory(path="blocks/garden/block.toml", content="enabled = true\n", actor="test")
    await garden_env.bus.call(MEMORY_WRITE, write)
    await talk(garden_env, "hi", block="garden")


async def test_a_broken_file_is_shown_and_other_blocks_work(garden_env: Environment) -> None:
    """A block whose file cannot be read shows ERROR; the list and the others live."""
    await garden_env.terminal.create_block("garden")
    write = WriteMemory(path="blocks/garden/block.toml", content="model = [", actor="test")
    await garden_env.bus.call(MEMORY_WRITE, write)
    states = {block.name: block.pulse.status for block in await garden_env.terminal.blocks()}
    assert states == {"garden": "ERROR", "main": "SLEEPING"}


async def test_an_archived_block_is_not_recreated(env: Environment) -> None:
    """A late turn's messages are refused, instead of making half a block."""
    append = AppendConversation(
        block="gone", conversation="conv_x", messages=(Message(id="m", role="user", content="x"),), actor="t"
    )
    with pytest.raises(RemoteFault) as refused:
        await env.bus.call(STORE_MESSAGES, append)
    assert refused.value.code == ErrorCode.NOT_FOUND
    assert not (env.platform.home.memory / "blocks" / "gone").exists()


async def test_the_block_status_comes_from_live_monitors(env: Environment) -> None:
    """Over several monitors the busiest counts; a block without work sleeps."""
    bucket = env.bus.kv(PULSE_BUCKET)
    ran = datetime.now(UTC)
    said: list[tuple[str, BlockStatusName]] = [("a", "ACTIVE"), ("b", "BUSY"), ("c", "ERROR")]
    for monitor, status in said:
        pulse = BlockStatus(status=status, last_run=ran, current_task="t" if status == "BUSY" else None)
        await bucket.put(monitor, BlockStatusHeartbeat(block="main", monitor=monitor, pulse=pulse))
    shown = (await env.terminal.block("main")).pulse
    assert (shown.status, shown.current_task, shown.last_run) == ("BUSY", "t", ran)
    await bucket.delete("b")
    assert (await env.terminal.block("main")).pulse.status == "ERROR"
    for monitor in ("a", "c"):
        await bucket.delete(monitor)
    assert (await env.terminal.block("main")).pulse == BlockStatus()


def test_the_order_of_states() -> None:
    """BUSY before ERROR before ACTIVE before SLEEPING."""
    order: tuple[BlockStatusName, ...] = ("SLEEPING", "ACTIVE", "ERROR", "BUSY")
    for count in range(1, 5):
        assert merge_pulses(BlockStatus(status=status) for status in order[:count]).status == order[count - 1]
