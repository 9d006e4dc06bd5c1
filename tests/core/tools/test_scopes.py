"""MB-T6 and MB-T7: how far files reach in each scope, for every kind of tool, as a black box over the bus."""

from pathlib import Path
from typing import Any

import pytest

from trunkline._util.untrusted_text import unwrap_tool_result

pytestmark = pytest.mark.anyio

HOSTILE = [
    "../other/config.json",
    "/etc/passwd",
    "~/x",
    "a/../../x",
    "out/secret",
    "/proc/self/environ",
    "~root/x",
]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that belongs to no block, with a secret."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("the secret")
    return folder


def scope(name: str) -> str:
    return f'[permissions]\nscope = "{name}"\n'


async def test_mb_t6_no_path_leads_out_of_the_block(
    tools: Any, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scope block: each way out is a tool error that says what would be allowed, and nothing is read or written."""
    async with tools() as caller:
        caller.workspace.mkdir(parents=True)
        (caller.workspace / "out").symlink_to(outside)
        (caller.workspace / "linked").symlink_to(outside / "secret")
        beside = caller.workspace.parent
        (beside / "other").mkdir()
        for there in (outside / "x", beside / "x", beside / "other/config.json"):
            there.write_text("the secret")  # what is refused is there to be read
        monkeypatch.setenv("HOME", str(outside))
        for path in (*HOSTILE, "linked", f"{outside}/secret", f"{caller.workspace}/out/secret"):
            read = await caller.call("read_file", {"path": path})
            written = await caller.call("write_file", {"path": path, "content": "evil"})
            assert (read.status, written.status) == ("error", "error"), path
            assert "the secret" not in read.output
        assert (outside / "secret").read_text() == "the secret"
        refused = await caller.call("read_file", {"path": f"{outside}/secret"})
        assert "trunkline permissions main --scope system" in refused.output
        other = await caller.call("read_file", {"path": f"{caller.workspace.parent}/other/x"})
        assert "trunkline permissions main --scope workspace" in other.output


async def test_the_scope_workspace_reaches_other_blocks_and_no_further(tools: Any, outside: Path) -> None:
    """Absolute paths below the workspaces are read and written; relative ones stay in the block."""
    async with tools() as caller:
        caller.files["blocks/main/block.toml"] = scope("workspace")
        await caller.call("write_file", {"path": "x", "content": "theirs"}, block="other")
        other = caller.workspace.parent / "other"
        assert unwrap_tool_result((await caller.call("read_file", {"path": f"{other}/x"})).output) == "theirs"
        assert (await caller.call("write_file", {"path": f"{other}/a/y", "content": "new"})).status == "ok"
        assert (other / "a/y").read_text() == "new"
        (other / "out").symlink_to(outside)
        for path in (
            *HOSTILE,
            f"{outside}/secret",
            f"{other}/out/secret",
            f"{other}/../../../outside/secret",
        ):
            assert (await caller.call("read_file", {"path": path})).status == "error", path
        listed = await caller.call("list_directory", {"path": str(other)})
        assert "a/" in listed.output
        assert (
            await caller.call("read_file", {"path": f"{caller.workspace}/x"}, block="other")
        ).status == "error"


async def test_mb_t7_scope_system_excludes_secrets_and_trunkline_itself(
    tools: Any, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Protected names, the home with its token and memory, keys and the kernel's files are closed in every scope."""
    monkeypatch.setenv("HOME", str(outside))
    async with tools() as caller:
        caller.files["blocks/main/block.toml"] = scope("system")
        assert (
            unwrap_tool_result((await caller.call("read_file", {"path": "~/secret"})).output) == "the secret"
        )
        assert (
            unwrap_tool_result((await caller.call("read_file", {"path": f"{outside}/secret"})).output)
            == "the secret"
        )
        assert (await caller.call("write_file", {"path": f"{outside}/new", "content": "x"})).status == "ok"
        (outside / "link").symlink_to(caller.home)
        (outside / ".env").write_text("KEY=1")
        (outside / "innocent").symlink_to(outside / ".env")
        memory = caller.home / "memory"
        memory.mkdir(exist_ok=True)
        closed = [
            f"{caller.home}/token", f"{caller.home}/trunkline.toml", f"{outside}/link/token", f"{memory}/x",
            f"{outside}/.env", f"{outside}/innocent", f"{outside}/x/id_rsa", f"{outside}/auth.json", "/dev/null",
            "/proc/self/environ", "/proc/1/environ", "~/.ssh/authorized_keys", f"{outside}/.git/hooks/x",
            "~/.ssh/config",
        ]  # fmt: skip
        for path in closed:
            assert (await caller.call("read_file", {"path": path})).status == "error", path
            assert (await caller.call("write_file", {"path": path, "content": "evil"})).status == "error", (
                path
            )
        assert not (memory / "x").exists()
        assert not (outside / ".git").exists()
        assert not (outside / ".ssh").exists()
        moved = await caller.call("move_file", {"source": str(caller.home), "target": f"{outside}/home"})
        assert moved.status == "error"
        assert caller.home.is_dir()


async def test_a_policy_narrows_a_scope(tools: Any, outside: Path) -> None:
    """The owner permits the whole system to be read and denies that anything outside the workspaces is written."""
    async with tools() as caller:
        caller.files["blocks/main/block.toml"] = scope("system")
        caller.files["policies/look-only.json"] = (
            '{"subject": "block:main", "resource": "files:system", "action": "write", "effect": "deny"}'
        )
        assert (await caller.call("read_file", {"path": f"{outside}/secret"})).status == "ok"
        refused = await caller.call("write_file", {"path": f"{outside}/secret", "content": "evil"})
        assert "look-only" in refused.output
        assert (outside / "secret").read_text() == "the secret"
        assert (await caller.call("write_file", {"path": "mine", "content": "x"})).status == "ok"
