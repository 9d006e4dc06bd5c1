"""A ``.git`` that is damaged while memory is open: readable content is read, a writer gets the fault and its fix,
edits by hand are kept, and after the doctor everything works again."""

import json
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.unprivileged import run_bound
from trunkline.contracts.conversations.messages import AppendConversation, Message
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.store import Change
from trunkline_bus import Refusal
from trunkline_git_store.fsck.integrity_check import check_root
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Git = Callable[..., str]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]


def object_file(root: Path, name: str) -> Path:
    command = ["git", "-C", str(root), "-c", "safe.directory=*", "rev-parse", name]
    oid = subprocess.check_output(command, text=True, timeout=60).strip()
    return root / ".git/objects" / oid[:2] / oid[2:]


def broken_config(root: Path) -> None:
    (root / ".git/config").write_text("[core\nbroken = = [")


def no_head(root: Path) -> None:
    (root / ".git/HEAD").unlink()


def broken_head(root: Path) -> None:
    (root / ".git/HEAD").write_text("garbage")


def no_folder(root: Path) -> None:
    object_file(root, "HEAD:notes").unlink()


def no_commit(root: Path) -> None:
    object_file(root, "HEAD").unlink()


def broken_pack(root: Path) -> None:
    for pack in (root / ".git/objects/pack").glob("*.pack"):
        pack.chmod(0o644)
        data = pack.read_bytes()
        pack.write_bytes(data[:40] + bytes(len(data) - 60) + data[-20:])


async def plain(call: Awaitable[object]) -> None:
    """It is done, or refused with where it failed and what to do; nothing else is raised."""
    try:
        await call
    except Refusal as refusal:
        assert ".git" in refusal.message or "history" in refusal.message, refusal.message
        assert "trunkline memory doctor" in refusal.message, refusal.message
        assert "storage failed" not in refusal.message


def append() -> AppendConversation:
    hello = Message(id="m1", role="user", content="hello")
    return AppendConversation(block="main", conversation="c1", messages=(hello,), actor="gateway")


@pytest.mark.parametrize("harm", [broken_config, no_head, broken_head, no_folder, no_commit, broken_pack])
async def test_errors_reach_a_person_as_sentences_only(
    harm: Callable[[Path], None], opened: Opened, root: Path, tmp_path: Path
) -> None:
    async with opened() as store:
        for text in (b"one", b"two"):
            await store.change(Change({"notes/a.md": text, "other/b.md": text}, actor="agent", reason=""))
        if harm is broken_pack:
            await store.pack(now=True)
        await store.search(SearchMemory(query="two"))
        harm(root)
        (root / "notes/a.md").write_text("by hand")
        assert (await store.read("other/b.md")).content == "two"
        assert await store.list("", recursive=True)
        if harm is not broken_pack:  # then what was found cannot be read any more
            found = await store.search(SearchMemory(query="two", path="other"))
            assert [hit.path for hit in found] == ["other/b.md"]
        for call in (
            store.append_conversation(append()), store.history("notes/a.md", limit=2), store.blame("notes/a.md"),
            store.change(Change({"notes/new.md": b"x"}, actor="agent", reason="")),
            store.export(tmp_path / "x.tar"), store.check(repair=False),
            store.search(SearchMemory(query="two")),
        ):  # fmt: skip
            await plain(call)
    assert (root / "notes/a.md").read_text() == "by hand"


@pytest.mark.parametrize("harm", [broken_config, no_head, broken_head, no_folder, no_commit])
async def test_the_memory_doctor_repairs_the_repository(
    harm: Callable[[Path], None], opened: Opened, root: Path, git: Git
) -> None:
    """Afterwards memory starts, has the edit by hand in history, and accepts the writes that it refused before."""
    async with opened() as store:
        for text in (b"one", b"two"):
            await store.change(Change({"notes/a.md": text, "other/b.md": text}, actor="agent", reason=""))
    harm(root)
    (root / "notes/a.md").write_text("by hand")
    found = {one.id: one for one in check_root(root, root.parent / "cache", repair=True)}
    assert any(one.status == "repaired" for one in found.values()), found
    async with opened() as store:
        await store.append_conversation(append())
        await store.change(Change({"notes/new.md": b"x"}, actor="agent", reason=""))
        assert (await store.read("notes/a.md")).content == "by hand"
        await store.export(root.parent / "x.tar")
    assert git("show", "HEAD:notes/a.md") == "by hand"
    assert git("status", "--porcelain") == ""


async def test_memory_starts_though_a_folder_of_the_last_version_is_lost(opened: Opened, root: Path) -> None:
    """Memory serves readable content, and accepts messages; the edit by hand stays on the disk."""
    async with opened() as store:
        await store.change(Change({"notes/a.md": b"one", "other/b.md": b"two"}, actor="agent", reason=""))
    no_folder(root)
    (root / ".git/index").unlink()
    (root / "notes/a.md").write_text("by hand")
    async with opened() as store:
        assert (await store.read("notes/a.md")).content == "by hand"
        assert await store.append_conversation(append()) == 1
        with pytest.raises(Refusal, match="trunkline memory doctor"):
            await store.change(Change({"notes/new.md": b"x"}, actor="agent", reason=""))


READ_ONLY = """
import json, sys
from pathlib import Path
import anyio
from trunkline.contracts.memory.store import Change, StoreContext
from trunkline_git_store.store import GitMemoryStore
from trunkline.workers.memory.write_check import WriteCheck
from trunkline_bus import Refusal

base = Path(sys.argv[1])
root, told = base / "memory", {}

async def main():
    store = GitMemoryStore()
    await store.open(StoreContext(root, base / "cache"))
    await store.change(Change({"a.md": b"a"}, actor="agent", reason=""))
    folders = [path for path in (root / ".git").rglob("*") if path.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    told["read"] = (await store.read("a.md")).content
    try:
        await store.change(Change({"b.md": b"b"}, actor="agent", reason=""))
    except Refusal as refusal:
        told["refused"] = refusal.message
    check = WriteCheck(root)
    seen = anyio.Event()
    async def changed():
        seen.set()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(check.run, changed)
        with anyio.fail_after(30):
            await seen.wait()
        tasks.cancel_scope.cancel()
    told["check"] = check.problem
    for folder in folders:
        folder.chmod(0o755)
    await store.change(Change({"b.md": b"b"}, actor="agent", reason=""))
    await store.aclose()
    print(json.dumps(told))

anyio.run(main)
"""


def test_a_repository_that_may_not_be_written_is_reported(tmp_path: Path) -> None:
    """Files are read, a write is refused with where, the worker knows that it cannot store, and later it can again."""
    reported = json.loads(run_bound(READ_ONLY, str(tmp_path)))
    assert reported["read"] == "a"
    assert ".git/objects" in reported["refused"] and "ermission denied" in reported["refused"]
    assert ".git/objects" in reported["check"]
