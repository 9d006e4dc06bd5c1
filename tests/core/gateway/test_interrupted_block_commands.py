"""Blocks with an interrupted archiving, restore or deletion: each command continues, or names the next step, and a
new block finds nothing of an earlier one."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.memory.files import DeleteMemory, MoveMemory
from trunkline.contracts.memory.subjects import MEMORY_DELETE, MEMORY_MOVE
from trunkline.errors import ErrorCode
from trunkline_bus import RemoteFault

from .conftest import Environment
from .test_blocks import talk

pytestmark = pytest.mark.anyio

ARCHIVE = "garden_2999-01-01T00-00-00-000000Z"
AGAIN: dict[str, Callable[[GatewayClient], Awaitable[object]]] = {
    "restore": lambda gateway: gateway.restore_block("garden"),
    "delete": lambda gateway: gateway.delete_block("garden"),
    "archive": lambda gateway: gateway.archive_block("garden"),
    "create": lambda gateway: gateway.create_block("garden"),
}


def filled(folder: Path, text: str = "x") -> Path:
    """A folder with a file in it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kept.txt").write_text(text)
    return folder


async def half_archived(env: Environment) -> Path:
    """Return the workspace of a block whose archiving was interrupted after memory had moved."""
    await env.terminal.create_block("garden")
    workspace = filled(env.platform.home.workspace("garden"))
    request = MoveMemory(source="blocks/garden", target=f"archive/{ARCHIVE}", actor="test")
    await env.bus.call(MEMORY_MOVE, request)
    return workspace


async def half_deleted(env: Environment) -> Path:
    """Return the workspace, which is not in its place, of a block whose deletion was interrupted before memory was
    asked."""
    await env.terminal.create_block("garden", BlockConfig(description="mine"))
    workspace = filled(env.platform.home.workspace("garden"))
    out = env.platform.home.workspaces / ".deleted" / "garden"
    out.parent.mkdir(exist_ok=True)
    workspace.rename(out)
    return workspace


async def test_a_deleted_default_block_starts_empty(own_env: Environment) -> None:
    """Files that no command deleted are set aside and not lost, after any interruption."""
    places = own_env.platform.home
    filled(places.workspace("main"))
    await own_env.terminal.delete_block("main")
    assert not places.workspace("main").exists()
    await talk(own_env, "hi")
    assert [block.name for block in await own_env.terminal.blocks()] == ["main"]
    filled(places.workspace("main"), "older")
    await own_env.bus.call(MEMORY_DELETE, DeleteMemory(path="blocks/main", actor="owner"))
    await talk(own_env, "hi again")
    assert (await own_env.terminal.block("main")).conversations == 1
    assert not places.workspace("main").exists()
    (aside,) = (places.workspaces / ".left").iterdir()
    assert (aside / "kept.txt").read_text() == "older"


async def test_an_existing_folder_becomes_the_workspace_of_a_new_block(own_env: Environment) -> None:
    """The files that an owner prepared in the folder are kept."""
    workspace = filled(own_env.platform.home.workspace("garden"))
    await own_env.terminal.create_block("garden")
    assert (workspace / "kept.txt").is_file()


@pytest.mark.parametrize("how", AGAIN)
async def test_an_interrupted_archive_is_finished(garden_env: Environment, how: str) -> None:
    """The files stay with the archive, whichever command comes next."""
    workspace = await half_archived(garden_env)
    if how == "delete":
        with pytest.raises(RemoteFault, match="blocks archive garden") as refused:
            await AGAIN[how](garden_env.terminal)
        assert refused.value.code == ErrorCode.CONFLICT
        await garden_env.terminal.archive_block("garden")
    else:
        await AGAIN[how](garden_env.terminal)
    if how != "restore":
        assert not workspace.exists()
    if how == "create":
        await garden_env.terminal.delete_block("garden")
    if how != "restore":
        await garden_env.terminal.restore_block("garden")
    assert (workspace / "kept.txt").is_file()


@pytest.mark.parametrize("how", ["restore", "delete"])
async def test_an_interrupted_deletion_can_be_repeated(garden_env: Environment, how: str) -> None:
    """The same command finishes it, and a restore takes it back, since memory still has the block."""
    workspace = await half_deleted(garden_env)
    await AGAIN[how](garden_env.terminal)
    assert not (garden_env.platform.home.workspaces / ".deleted" / "garden").exists()
    if how == "restore":
        assert (workspace / "kept.txt").is_file()
        assert (await garden_env.terminal.block("garden")).config.description == "mine"
        with pytest.raises(RemoteFault):
            await garden_env.terminal.restore_block("garden")
        return
    with pytest.raises(RemoteFault) as gone:
        await garden_env.terminal.block("garden")
    assert gone.value.code == ErrorCode.NOT_FOUND


async def test_an_interrupted_deletion_is_finished(garden_env: Environment) -> None:
    """Memory no longer has the block: delete removes the rest, an older archive can be restored, a new block is
    empty."""
    env, places = garden_env, garden_env.platform.home
    await env.terminal.create_block("garden", BlockConfig(description="older"))
    filled(places.workspace("garden"), "older")
    await env.terminal.archive_block("garden")
    workspace = await half_deleted(env)
    await env.bus.call(MEMORY_DELETE, DeleteMemory(path="blocks/garden", actor="test"))
    assert (await env.terminal.restore_block("garden")).config.description == "older"
    assert (workspace / "kept.txt").read_text() == "older"
    await env.terminal.delete_block("garden")
    assert list((places.workspaces / ".deleted").iterdir()) == []
    filled(places.workspaces / ".deleted" / "garden")
    await env.terminal.delete_block("garden")
    assert list((places.workspaces / ".deleted").iterdir()) == []
    filled(places.workspaces / ".deleted" / "garden")
    await env.terminal.create_block("garden")
    assert list((places.workspaces / ".deleted").iterdir()) == [] and not workspace.exists()


async def test_a_half_deleted_archive_is_restored_or_deleted(garden_env: Environment) -> None:
    """Its folder is found where the deletion took it; when memory has forgotten it, the same command removes the rest,
    and no older archive."""
    env, places = garden_env, garden_env.platform.home
    for text in ("older", "newer"):
        await env.terminal.create_block("garden", BlockConfig(description=text))
        filled(places.workspace("garden"), text)
        await env.terminal.archive_block("garden")
    newest = max(places.workspaces.glob(".archive/*"))
    out = places.workspaces / ".deleted" / newest.name
    out.parent.mkdir(exist_ok=True)
    newest.rename(out)
    assert (await env.terminal.restore_block("garden")).config.description == "newer"
    assert (places.workspace("garden") / "kept.txt").read_text() == "newer"
    await env.terminal.archive_block("garden")
    newest = max(places.workspaces.glob(".archive/*"))
    newest.rename(places.workspaces / ".deleted" / newest.name)
    await env.bus.call(MEMORY_DELETE, DeleteMemory(path=f"archive/{newest.name}", actor="test"))
    await env.terminal.delete_block("garden", archived=True)
    assert list((places.workspaces / ".deleted").iterdir()) == []
    assert (await env.terminal.restore_block("garden")).config.description == "older"


async def test_a_restore_reports_conflicting_files(garden_env: Environment) -> None:
    """The conflict is reported before any move, and the restore continues once the files are removed; empty folders
    are no conflict."""
    env, places = garden_env, garden_env.platform.home
    await env.terminal.create_block("garden")
    workspace = filled(places.workspace("garden"), "mine")
    await env.terminal.archive_block("garden")
    filled(workspace, "foreign")
    with pytest.raises(RemoteFault, match=str(workspace)) as refused:
        await env.terminal.restore_block("garden")
    assert refused.value.code == ErrorCode.CONFLICT
    assert (await env.terminal.block_list(archived=True)).archived != ()
    (workspace / "kept.txt").unlink()
    await env.terminal.restore_block("garden")
    assert (workspace / "kept.txt").read_text() == "mine"


async def test_a_half_restored_block_that_was_used_keeps_both_sets_of_files(garden_env: Environment) -> None:
    """Files were written into the block before the restore continued: the report says where they are, and none is
    deleted."""
    env, places = garden_env, garden_env.platform.home
    await env.terminal.create_block("garden")
    workspace = filled(places.workspace("garden"), "mine")
    await env.terminal.archive_block("garden")
    (archive,) = places.workspaces.glob(".archive/*")
    request = MoveMemory(source=f"archive/{archive.name}", target="blocks/garden", actor="test")
    await env.bus.call(MEMORY_MOVE, request)
    filled(workspace, "since")
    with pytest.raises(RemoteFault, match=str(workspace)):
        await env.terminal.restore_block("garden")
    with pytest.raises(RemoteFault) as unknown:
        await env.terminal.delete_block("garden", archived=True)
    assert unknown.value.code == ErrorCode.NOT_FOUND
    workspace.rename(workspace.with_name("since"))
    await env.terminal.restore_block("garden")
    assert (workspace / "kept.txt").read_text() == "mine"
