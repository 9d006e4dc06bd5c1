"""Starting: a new memory, an old one, and every reason not to start, said in a sentence."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.store import Change
from trunkline.errors import StorageError
from trunkline_bus import Refusal
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Git = Callable[..., str]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]


async def refusal(opened: Opened, base: Path | None = None) -> StorageError:
    """The error with which a store does not open."""
    with pytest.raises(StorageError) as refused:
        async with opened(*() if base is None else (base,)):
            pass
    return refused.value


async def test_a_new_memory_has_its_first_files(opened: Opened, root: Path, git: Git) -> None:
    """AGENT.md, preferences and the owner's page are there, committed, and not written again."""
    async with opened():
        pass
    (root / "AGENT.md").write_text("Mine.")
    (root / "preferences.toml").unlink()
    async with opened() as store:
        assert (await store.read("AGENT.md")).content == "Mine."
    assert not (root / "preferences.toml").exists()
    assert git("log", "--format=%s").splitlines() == ["Edited by hand", "Begin this memory"]


async def test_a_folder_of_notes_becomes_a_memory(opened: Opened, root: Path, git: Git) -> None:
    """A root with files keeps them, as the owner's, and gets only the missing ones."""
    await anyio.Path(root).mkdir()
    (root / "AGENT.md").write_text("Mine.")
    (root / "picture.png").write_bytes(bytes(range(256)))
    async with opened():
        pass
    assert (root / "AGENT.md").read_text() == "Mine."
    assert git("log", "--format=%an %s").splitlines() == [
        "trunkline Begin this memory",
        "owner Edited by hand",
    ]
    assert git("status", "--porcelain") == ""


async def test_a_removed_history_starts_again(opened: Opened, root: Path, git: Git) -> None:
    """Cached facts about files of the old repository do not apply to the new one."""
    async with opened() as store:
        await store.change(Change({"notes.md": b"Beans are sown in May."}, actor="agent", reason=""))
    shutil.rmtree(root / ".git")
    async with opened() as store:
        assert (await store.read("notes.md")).content == "Beans are sown in May."
        assert [hit.path for hit in await store.search(SearchMemory(query="sown"))] == ["notes.md"]
    assert git("show", "HEAD:notes.md") == "Beans are sown in May."
    git("fsck", "--full")


async def test_a_second_process_is_refused(opened: Opened, root: Path, tmp_path: Path) -> None:
    """While one process has the root another is refused with its pid; afterwards it may open it."""
    script = (
        "import anyio, sys; from pathlib import Path; from trunkline_git_store.store import GitMemoryStore\n"
        "from trunkline.contracts.memory.store import StoreContext\n"
        "async def main():\n"
        "    await GitMemoryStore().open(StoreContext(Path(sys.argv[1]) / 'memory', Path(sys.argv[1]) / 'cache2'))\n"
        "anyio.run(main)\n"
    )

    def other() -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", script, str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    async with opened():
        said = other().stderr
        assert "held by another process" in said
        assert f"(pid {os.getpid()})" in said
        assert "held by another" in (await refusal(opened)).sentence
    assert other().returncode == 0


async def test_a_root_that_cannot_be_made_is_refused(opened: Opened, tmp_path: Path) -> None:
    """A file where the root or a folder above it should be: the sentence says the phase and where."""
    (tmp_path / "memory").write_text("a file")
    error = await refusal(opened)
    assert "Memory cannot start (memory root)" in error.sentence
    assert str(tmp_path / "memory") in error.sentence
    assert error.hint
    (tmp_path / "file").write_text("")
    assert "is not a folder" in (await refusal(opened, tmp_path / "file")).sentence


@pytest.mark.namespace
async def test_a_read_only_root_is_refused(opened: Opened, tmp_path: Path) -> None:
    """ARCH-9, PA-T6: on a read-only file system memory does not start, and reports the cause."""
    async with opened():
        pass
    mount(["mount", "--bind", str(tmp_path / "memory"), str(tmp_path / "memory")])
    try:
        mount(["mount", "-o", "remount,bind,ro", str(tmp_path / "memory")])
        error = await refusal(opened)
    finally:
        mount(["umount", str(tmp_path / "memory")])
    assert "read-only" in error.sentence
    assert "writable" in error.hint


@pytest.mark.namespace
async def test_a_full_disk_is_refused_and_writes_stay_whole(opened: Opened, tmp_path: Path, git: Git) -> None:
    """PA-T5: a write for which there is no room fails whole; a start without room says that the disk is full."""
    (tmp_path / "memory").mkdir()
    mount(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path / "memory")])
    try:
        async with opened() as store:
            await store.change(Change({"a.md": b"small"}, actor="a", reason=""))
            with pytest.raises(Refusal) as refused:
                await store.change(Change({"a.md": os.urandom(2_000_000)}, actor="a", reason=""))
            assert refused.value.code == "write_failure"
            assert (await store.read("a.md")).content == "small"
            await store.change(Change({"b.md": b"works again"}, actor="a", reason=""))
        assert git("fsck", "--strict", "--no-dangling") == ""
        with (tmp_path / "memory/filler").open("wb", buffering=0) as filler:
            fill(filler.fileno())
        assert "disk is full" in (await refusal(opened)).sentence
    finally:
        mount(["umount", str(tmp_path / "memory")])


def fill(file: int) -> None:
    """Write until there is no room."""
    try:
        while True:
            os.write(file, b"\1" * 4096)
    except OSError:
        return


def mount(command: list[str]) -> None:
    """Run mount or umount; without the right to, the test is skipped."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting needs root")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 and command[0] == "mount":
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")


@pytest.mark.parametrize("harm", ["head", "objects", "link", "file", "bare", "detached", "tree"])
async def test_a_repository_that_cannot_be_used_is_refused(
    harm: str, opened: Opened, root: Path, git: Git
) -> None:
    """ARCH-9: without a history that works memory does not start, names the phase, and changes nothing."""
    async with opened():
        pass
    before = (root / "AGENT.md").read_text()
    damage(root, git, harm)
    error = await refusal(opened)
    assert "Memory cannot start (version history)" in error.sentence
    assert error.hint
    assert (root / "AGENT.md").read_text() == before


def damage(root: Path, git: Git, harm: str) -> None:
    """Make a repository unusable in one of many ways."""
    folder = root / ".git"
    if harm == "head":
        (folder / "HEAD").write_text("garbage")
    elif harm == "objects":
        shutil.rmtree(folder / "objects")
        (folder / "objects").mkdir()
    elif harm == "tree":
        tree = git("rev-parse", "HEAD^{tree}").strip()
        (folder / "objects" / tree[:2] / tree[2:]).unlink()
    elif harm == "bare":
        git("config", "core.bare", "true")
    elif harm == "detached":
        git("switch", "--detach", "-q")
    else:
        folder.rename(root.parent / "elsewhere.git")
        if harm == "link":
            folder.symlink_to(root.parent / "elsewhere.git")
        else:
            folder.write_text(f"gitdir: {root.parent / 'elsewhere.git'}\n")


async def test_temporary_files_of_a_killed_process_are_removed(opened: Opened, root: Path) -> None:
    """Half-written objects, staged files and reference locks of the dead do not stop a start."""
    async with opened():
        pass
    for name in ("objects/tmp_object_git2_abc", "refs/heads/main.lock", "index.lock", "trunkline/stage/1-1"):
        (root / ".git" / name).write_text("half")
    async with opened():
        pass
    for name in ("objects/tmp_object_git2_abc", "refs/heads/main.lock", "index.lock", "trunkline/stage/1-1"):
        assert not (root / ".git" / name).exists()


async def test_the_cache_need_not_be_writable(opened: Opened, tmp_path: Path) -> None:
    """FS-6: without a place for the derived index memory still works."""
    (tmp_path / "cache").write_text("a file")
    async with opened() as store:
        await store.change(Change({"beans.md": b"Beans climb."}, actor="owner", reason="Note"))
        assert (await store.search(SearchMemory(query="beans")))[0].path == "beans.md"


async def test_initial_files_are_not_search_hits(opened: Opened, root: Path) -> None:
    """The initial instructions are part of every turn and are no memory; the same file is found once it is edited."""
    async with opened() as store:
        assert await store.search(SearchMemory(query="instructions owner personality passwords")) == ()
        await store.change(
            Change({"AGENT.md": b"Answer with passwords never."}, actor="owner", reason="Mine")
        )
        assert [hit.path for hit in await store.search(SearchMemory(query="passwords"))] == ["AGENT.md"]
