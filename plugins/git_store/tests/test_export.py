"""Export: one archive that is complete, readable without the program, and good for starting again."""

import json
import os
import sqlite3
import subprocess
import tarfile
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import anyio
import pytest

from trunkline.contracts.conversations.messages import AppendConversation, Message
from trunkline.contracts.memory.initial_files import INITIAL_FILES
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.store import Change
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Git = Callable[..., str]
Write = Callable[..., Awaitable[str]]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]


def unpack(archive: Path, folder: Path) -> None:
    """Unpack with the stock tar."""
    folder.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(folder)], check=True, timeout=60)


async def test_an_archive_needs_nothing_but_tar_and_git(
    store: GitMemoryStore, write: Write, git: Git, tmp_path: Path
) -> None:
    """ARCH-7: all files, all history, a README; git finds it whole and clean."""
    await write("notes/ünï.md", "Grüße")
    await write("notes/ünï.md", "changed")
    git("branch", "mine", "HEAD~1")
    files = await store.export(tmp_path / "x.tar")
    unpack(tmp_path / "x.tar", tmp_path / "out")
    memory = tmp_path / "out/memory"
    assert files == len(INITIAL_FILES) + 1
    assert (memory / "notes/ünï.md").read_text() == "changed"
    assert "git -C memory log" in (tmp_path / "out/README.txt").read_text()
    assert git("fsck", "--full", "--strict", "--no-dangling", at=memory) == ""
    assert git("status", "--porcelain", at=memory) == ""
    assert git("show", "HEAD~1:notes/ünï.md", at=memory) == "Grüße"
    assert git("rev-parse", "HEAD", "mine", at=memory) == git("rev-parse", "HEAD", "mine")


async def test_an_archive_lists_its_content_with_checksums(
    store: GitMemoryStore, write: Write, tmp_path: Path
) -> None:
    """The manifest counts its files; the stock ``sha256sum`` checks every file, and finds the changed one."""
    await write("blocks/main/a.md", "text")
    message = Message(id="m1", role="user", content="hello")
    await store.append_conversation(
        AppendConversation(block="garden", conversation="c", messages=(message,), actor="gateway")
    )
    await store.export(tmp_path / "x.tar", derived=True)
    unpack(tmp_path / "x.tar", tmp_path / "out")
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["form"] == "trunkline-memory" and manifest["schema"] == 1
    assert (manifest["files"], manifest["conversations"], manifest["commits"]) == (
        len(INITIAL_FILES) + 2,
        1,
        3,
    )
    assert manifest["blocks"] == ["garden", "main"]
    assert sums_fit(tmp_path / "out")
    listed = (tmp_path / "out/SHA256SUMS").read_text()
    files = [file for file in (tmp_path / "out").rglob("*") if file.is_file() and file.name != "SHA256SUMS"]
    assert len(listed.splitlines()) == len(files)
    with closing(sqlite3.connect(tmp_path / "out/derived/memory.db")) as database:
        assert database.execute("pragma quick_check").fetchone() == ("ok",)
    (tmp_path / "out/memory/blocks/main/a.md").write_text("other")
    assert not sums_fit(tmp_path / "out")


async def test_an_archive_restores_on_another_machine(
    store: GitMemoryStore, opened: Opened, write: Write, tmp_path: Path
) -> None:
    """PA-T18, FS-1: documents, conversations, history and search work on the unpacked copy, and can be continued."""
    version = await write("notes/a.md", "needle")
    message = Message(id="m1", role="user", content="hello")
    append = AppendConversation(block="main", conversation="c", messages=(message,), actor="gateway")
    await store.append_conversation(append)
    await store.export(tmp_path / "x.tar")
    unpack(tmp_path / "x.tar", tmp_path / "out")
    async with opened(tmp_path / "out") as copy:
        assert (await copy.read("notes/a.md", version)).content == "needle"
        assert [hit.path for hit in await copy.search(SearchMemory(query="needle"))] == ["notes/a.md"]
        more = AppendConversation(
            block="main",
            conversation="c",
            messages=(message, Message(id="m2", role="assistant", content="hi")),
            actor="gateway",
        )
        assert await copy.append_conversation(more) == 2


async def test_an_archive_is_complete_during_writes(store: GitMemoryStore, git: Git, tmp_path: Path) -> None:
    """PA-T18: each archive is one commit, with all that was acknowledged before it was asked for."""
    stored: list[int] = []
    some = [anyio.Event() for _ in range(4)]

    async def talk() -> None:
        for number in range(10_000):
            message = Message(id=f"m{number}", role="user", content=f"text {number}")
            append = AppendConversation(block="main", conversation="c", messages=(message,), actor="gateway")
            stored.append(await store.append_conversation(append))
            if number % 5 == 4 and number < 20:
                some[number // 5].set()

    async with anyio.create_task_group() as group:
        group.start_soon(talk)
        for number in range(4):
            await some[number].wait()
            before = len(stored)
            await store.export(tmp_path / f"{number}.tar")
            unpack(tmp_path / f"{number}.tar", tmp_path / f"out{number}")
            memory = tmp_path / f"out{number}/memory"
            assert git("fsck", "--full", "--strict", "--no-dangling", at=memory) == ""
            assert git("status", "--porcelain", at=memory) == ""
            lines = (memory / "blocks/main/conversations/c/c.jsonl").read_text().splitlines()
            assert len(lines) > before
        group.cancel_scope.cancel()


async def test_a_failed_export_leaves_nothing(store: GitMemoryStore, tmp_path: Path) -> None:
    """On an unwritable target, the export fails and leaves no partial archive."""
    with pytest.raises(OSError, match="No such file"):
        await store.export(tmp_path / "missing/x.tar")
    (tmp_path / "x.tar").mkdir()
    with pytest.raises(OSError, match=r"x\.tar"):
        await store.export(tmp_path / "x.tar")
    assert [name for name in names_in(tmp_path) if "part" in name or "export" in name] == []


async def test_an_archive_contains_no_lock_or_temporary_files(store: GitMemoryStore, tmp_path: Path) -> None:
    """Only what belongs to git and to memory is in it."""
    await store.export(tmp_path / "x.tar")
    with tarfile.open(tmp_path / "x.tar") as tar:
        assert not [name for name in tar.getnames() if "trunkline" in name or name.startswith(("/", ".."))]


def sums_fit(folder: Path) -> bool:
    """Report whether the stock program verifies all files by their checksums."""
    check = ["sha256sum", "-c", "--strict", "--quiet", "SHA256SUMS"]
    return subprocess.run(check, cwd=folder, check=False, capture_output=True, timeout=30).returncode == 0


def names_in(folder: Path) -> list[str]:
    """The names in a folder."""
    return [path.name for path in folder.iterdir()]


async def test_an_edit_by_hand_is_in_the_export(store: GitMemoryStore, root: Path, tmp_path: Path) -> None:
    """The export has the files on disk at its start: new, changed, and without the deleted ones."""
    await store.change(Change({"a.md": b"a", "gone.md": b"gone"}, actor="agent", reason=""))
    (root / "a.md").write_text("by hand")
    (root / "new.md").write_text("new")
    (root / "gone.md").unlink()
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("/etc/passwd")
    await store.export(tmp_path / "x.tar")
    with tarfile.open(tmp_path / "x.tar") as tar:
        names = tar.getnames()
        file = tar.extractfile("memory/a.md")
        assert file is not None and file.read() == b"by hand"
    assert "memory/new.md" in names
    assert not {"memory/gone.md", "memory/pipe", "memory/link"} & set(names)
