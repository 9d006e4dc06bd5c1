"""Writes by programs and people into an open memory: history records a file once it is complete, never half."""

import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from trunkline._util.archives.manifest import ArchiveManifest
from trunkline.contracts.memory.store import Change
from trunkline_git_store import file_stability
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Git = Callable[..., str]

SLOWLY = """
import sys, time
longest, last = 0.0, time.monotonic()
with open(sys.argv[1], "wb", buffering=0) as file:
    for number in range(int(sys.argv[2])):
        file.write(b"%d of a long text\\n" % number * 50)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
        time.sleep(0.05)
print(longest)
"""
"""Writes in chunks, and tells the longest time in which it wrote nothing: a busy machine may let it rest."""


@asynccontextmanager
async def maintained(store: GitMemoryStore) -> AsyncIterator[None]:
    """Run the store's maintenance, as the platform does in the background."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run_maintenance)
        yield
        tasks.cancel_scope.cancel()


def written(path: Path, chunks: int) -> "subprocess.Popen[bytes]":
    """Another program writes a file in chunks."""
    return subprocess.Popen([sys.executable, "-c", SLOWLY, str(path), str(chunks)], stdout=subprocess.PIPE)


async def begun(path: Path) -> None:
    """Return when the program has written something."""
    file = anyio.Path(path)
    with anyio.fail_after(60):
        while not await file.exists() or b"long" not in await file.read_bytes():  # noqa: ASYNC110 - as below
            await anyio.sleep(0.05)


async def committed(git: Git, path: str, text: str) -> None:
    """Return when the last commit holds a file with this text at its end."""
    with anyio.fail_after(60):
        while text not in git("log", "-p", "-1", "--format=", "--", path):  # noqa: ASYNC110 - another program is asked
            await anyio.sleep(0.1)


async def versions(git: Git, path: str) -> list[bytes]:
    """All states of a file in history, newest first."""
    found = git("log", "--format=%H", "--", path).split()
    return [git("show", f"{version}:{path}").encode() for version in found]


async def test_a_file_that_is_written_slowly_is_committed_once_and_whole(
    store: GitMemoryStore, root: Path, git: Git
) -> None:
    """A program writes for some sweeps: no half of its file is in history, and the whole soon is."""
    async with maintained(store):
        for number in range(8):
            name = f"slow-{number}.md"
            program = written(root / name, 60)
            said, _ = await anyio.to_thread.run_sync(program.communicate)
            await committed(git, name, "59 of a long text")
            if float(said) < file_stability.STABLE_SECONDS / 2:
                break
        else:
            pytest.skip("this machine is too busy for a program that writes all the time")
    assert await versions(git, name) == [(root / name).read_bytes()]


async def test_an_editors_save_is_committed_as_one_change(
    store: GitMemoryStore, root: Path, git: Git
) -> None:
    """Editors write a temporary file and rename it, or remove the old one first: history has neither the temporary
    file nor a commit without the file."""
    await store.change(Change({"a.md": b"old", "b.md": b"old"}, actor="agent", reason=""))
    async with maintained(store):
        for number in range(6):
            (root / ".a.md.part").write_text(f"{number}\n" * 9)
            (root / ".a.md.part").rename(root / "a.md")
            (root / "b.md").unlink(missing_ok=True)
            (root / "b.md").write_text(f"new {number}\n")
            await anyio.sleep(0.5)
        await committed(git, "a.md", "+5")
        await committed(git, "b.md", "+new 5")
    assert git("log", "--format=", "--name-status", "--diff-filter=D") == ""
    assert ".a.md.part" not in git("log", "--format=", "--name-only")


async def test_a_deleted_file_is_soon_deleted_in_history(store: GitMemoryStore, root: Path, git: Git) -> None:
    await store.change(Change({"a.md": b"old"}, actor="agent", reason=""))
    async with maintained(store):
        (root / "a.md").unlink()
        with anyio.fail_after(60):
            while "D\ta.md" not in git("log", "-1", "--format=", "--name-status"):  # noqa: ASYNC110 - as above
                await anyio.sleep(0.1)


async def test_a_file_that_never_rests_is_committed_now_and_then(
    store: GitMemoryStore, root: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that is always written to is in history as it was at some moments, and the commits say so."""
    monkeypatch.setattr(file_stability, "MAX_UNSTABLE_SECONDS", 1.0)
    async with maintained(store):
        program = written(root / "events.log", 1_200)
        try:
            with anyio.fail_after(50):
                while len(await versions(git, "events.log")) < 2:  # noqa: ASYNC110 - as above
                    await anyio.sleep(0.2)
            assert program.poll() is None, "it was still being written"
        finally:
            program.kill()
            await anyio.to_thread.run_sync(program.wait)
    newer, older = (await versions(git, "events.log"))[:2]
    assert newer.startswith(older)
    assert (
        git("log", "-1", "--format=%s", "--", "events.log").strip()
        == "Edited by hand, while it was being written"
    )


async def test_an_agents_write_commits_external_edits_first(store: GitMemoryStore, root: Path) -> None:
    """An agent writes a file that a program is writing: the program's content is in history first."""
    program = written(root / "slow.md", 1_200)
    try:
        await begun(root / "slow.md")
        await store.change(Change({"slow.md": b"mine"}, actor="agent", reason=""))
    finally:
        program.kill()
        await anyio.to_thread.run_sync(program.wait)
    found = await store.history("slow.md", limit=5)
    assert [change.author for change in found] == ["agent", "owner"]


async def test_an_export_names_files_still_being_written(
    store: GitMemoryStore, root: Path, tmp_path: Path
) -> None:
    """Finished files are in the archive; an unfinished one is listed, and is in it with its last finished content."""
    await store.change(Change({"slow.md": b"before"}, actor="agent", reason=""))
    program = written(root / "slow.md", 1_200)
    try:
        await begun(root / "slow.md")
        (root / "done.md").write_text("done")
        await store.export(tmp_path / "x.tar")
        assert program.poll() is None
    finally:
        program.kill()
        await anyio.to_thread.run_sync(program.wait)
    with tarfile.open(tmp_path / "x.tar") as tar:
        texts = {
            name: file.read()
            for name in ("manifest.json", "memory/done.md", "memory/slow.md")
            if (file := tar.extractfile(name))
        }
    gaps = msgspec.json.decode(texts["manifest.json"], type=ArchiveManifest).gaps
    assert [gap.what for gap in gaps] == ["slow.md"]
    assert "being written" in gaps[0].why
    assert (texts["memory/done.md"], texts["memory/slow.md"]) == (b"done", b"before")
