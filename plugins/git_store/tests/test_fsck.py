"""Damage by disks, power cuts and other programs is repaired or reported; no committed line is lost silently."""

import os
import random
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from trunkline.contracts.memory.check import MemoryFinding
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.store import Change
from trunkline.errors import StorageError
from trunkline_bus import Refusal
from trunkline_git_store.fsck.integrity_check import check_root
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Git = Callable[..., str]
Write = Callable[..., Awaitable[str]]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]


def examined(root: Path, *, repair: bool = True) -> dict[str, MemoryFinding]:
    """The findings of an examination, by id."""
    return {finding.id: finding for finding in check_root(root, root.parent / "cache", repair=repair)}


def spoil(root: Path, oid: str, how: str) -> None:
    """Break a loose object as disks do."""
    file = root / ".git/objects" / oid[:2] / oid[2:]
    file.chmod(0o644)
    data = file.read_bytes()
    broken = {"truncated": data[: len(data) // 2], "empty": b"", "garbage": b"\0" * len(data)}
    file.write_bytes(broken[how])


@pytest.fixture
async def closed(opened: Opened) -> list[str]:
    """A closed memory of some versions of a file in a folder; gives the versions."""
    async with opened() as store:
        return [
            await store.change(Change({"notes/a.md": f"text {number}\n".encode()}, actor="ada", reason=""))
            for number in range(4)
        ]


# Broken objects ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["truncated", "empty", "garbage"])
@pytest.mark.parametrize("what", ["HEAD:notes/a.md", "HEAD:notes", "HEAD^{tree}"])
async def test_a_broken_object_of_the_current_version_is_restored(
    what: str, how: str, opened: Opened, closed: list[str], root: Path, git: Git
) -> None:
    """Memory starts in spite of it: the object is put aside and made again from the files; nothing is lost."""
    spoil(root, git("rev-parse", what).strip(), how)
    async with opened() as store:
        assert (await store.read("notes/a.md")).content == "text 3\n"
        assert (await store.read("notes/a.md", closed[0])).content == "text 0\n"
        await store.change(Change({"notes/b.md": b"text 3\n"}, actor="ada", reason=""))
    assert git("fsck", "--full", "--strict", "--no-dangling") == ""
    assert git("status", "--porcelain") == ""
    assert len(list((root / ".git/trunkline/damaged").rglob("*/*/*"))) == 1


async def test_a_broken_object_of_an_earlier_version_is_reported(
    opened: Opened, closed: list[str], root: Path, git: Git
) -> None:
    """An older state that is in no file any more is named with its version; all others stay readable."""
    spoil(root, git("rev-parse", f"{closed[1]}:notes/a.md").strip(), "truncated")
    found = examined(root)
    assert found["git.objects"].status == "repaired"
    assert found["git.history"].status == "error"
    assert f"notes/a.md in {closed[1][:10]}" in found["git.history"].summary
    assert "backup" in found["git.history"].hint
    async with opened() as store:
        with pytest.raises(Refusal):
            await store.read("notes/a.md", closed[1])
        assert (await store.read("notes/a.md", closed[2])).content == "text 2\n"
        await store.change(Change({"notes/a.md": b"text 1\n"}, actor="ada", reason=""))
    assert examined(root)["git.history"].status == "ok"  # the same text again is the same object


async def test_a_lost_last_commit_is_reported_and_the_branch_reset(
    opened: Opened, closed: list[str], root: Path, git: Git
) -> None:
    """The branch ends at the last readable commit; the content of the files is committed as the owner's."""
    spoil(root, closed[3], "empty")
    with pytest.raises(StorageError, match="damaged"):
        async with opened():
            pass
    found = examined(root)
    assert found["git.branch"].status == "repaired"
    assert found["git.history"].status == "ok"
    async with opened() as store:
        assert (await store.read("notes/a.md")).content == "text 3\n"
        assert [change.author for change in await store.history("notes/a.md", limit=2)] == ["owner", "ada"]
    assert git("fsck", "--full", "--strict", "--no-dangling") == ""


# Packs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["cut", "flipped"])
async def test_intact_objects_of_a_broken_pack_are_recovered(
    how: str, opened: Opened, closed: list[str], root: Path, git: Git
) -> None:
    """Objects that can still be read from the pack, and the current files, are in history again; the rest is named."""
    async with opened() as store:
        for number in range(50):
            await store.change(
                Change({f"many/{number}.md": os.urandom(200).hex().encode()}, actor="a", reason="")
            )
        await store.pack(now=True)
    (pack,) = (root / ".git/objects/pack").glob("*.pack")
    pack.chmod(0o644)
    data = bytearray(pack.read_bytes())
    if how == "cut":
        pack.write_bytes(data[: len(data) - 300])
    else:
        data[len(data) // 2] ^= 0xFF
        pack.write_bytes(data)
    assert examined(root, repair=False)["git.packs"].status == "warning"
    assert pack.exists()
    found = examined(root)
    assert found["git.packs"].status == "repaired"
    assert not pack.exists()
    assert found["git.history"].status in ("ok", "error")
    async with opened() as store:
        assert (await store.read("notes/a.md")).content == "text 3\n"
        assert len(await store.list("many", recursive=False)) == 50


async def test_a_half_written_pack_is_quarantined(
    opened: Opened, closed: list[str], root: Path, git: Git
) -> None:
    """A pack whose writer was killed before its index affects nothing, and the doctor removes it."""
    packs = root / ".git/objects/pack"
    (packs / ("pack-" + "0" * 40 + ".pack")).write_bytes(b"PACK\0\0\0\2\0\0")
    (packs / "tmp_pack_x").write_bytes(b"PACK")
    os.utime(packs / "tmp_pack_x", (1, 1))
    async with opened() as store:
        assert (await store.read("notes/a.md", closed[0])).content == "text 0\n"
    found = examined(root)
    assert (found["git.packs"].status, found["git.litter"].status) == ("repaired", "repaired")
    assert list(packs.iterdir()) == []
    assert all(finding.status == "ok" for finding in examined(root).values())


async def test_packs_are_repacked_beside_a_half_written_one(
    opened: Opened, closed: list[str], root: Path, git: Git
) -> None:
    """A process killed while it removes a pack leaves one without an index; later packing still works."""
    half = root / ".git/objects/pack" / ("pack-" + "0" * 40 + ".pack")
    half.write_bytes(b"PACK")
    async with opened() as store:
        for number in range(3):
            await store.change(Change({f"{number}.md": b"text"}, actor="a", reason=""))
            await store.pack(now=True)
        assert (await store.read("notes/a.md", closed[0])).content == "text 0\n"
    half.unlink()
    assert len(list(half.parent.glob("*.pack"))) < 3
    assert git("fsck", "--full", "--strict", "--no-dangling") == ""


# The derived files, and looking only -------------------------------------------------------------------------


async def test_broken_databases_are_rebuilt(opened: Opened, closed: list[str], root: Path) -> None:
    """The doctor removes the databases and reports it, and the next search finds everything again."""
    for name in ("memory.db", "memory-history.db"):
        file = root.parent / "cache" / name
        file.write_bytes(b"x" * 10_000)
    found = examined(root)
    assert {found[name].status for name in ("index.memory", "index.memory-history")} == {"repaired"}
    async with opened() as store:
        assert (await store.search(SearchMemory(query="text")))[0].path == "notes/a.md"
        assert len(await store.history("notes/a.md", limit=9)) == 4


async def test_a_check_changes_nothing(closed: list[str], root: Path, git: Git) -> None:
    """Without repair every fault is reported and left unchanged."""
    spoil(root, git("rev-parse", "HEAD:notes/a.md").strip(), "empty")
    before = {file: file.stat().st_mtime_ns for file in (root / ".git/objects").rglob("*") if file.is_file()}
    assert examined(root, repair=False)["git.objects"].status == "warning"
    assert {file: file.stat().st_mtime_ns for file in before} == before


async def test_a_memory_in_use_is_examined_too(store: GitMemoryStore, write: Write, root: Path) -> None:
    """Through the store that holds the root, while others write; from outside it is refused."""
    with pytest.raises(StorageError, match="held by another process"):
        examined(root)
    findings: list[MemoryFinding] = []

    async def examine() -> None:
        findings.extend(await store.check(repair=True))

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(write, f"{number}.md", "x")
        group.start_soon(examine)
    assert {finding.status for finding in findings} == {"ok"}
    assert len([entry for entry in await store.list("", recursive=False) if entry.path[0].isdigit()]) == 20


# Other programs ----------------------------------------------------------------------------------------------


async def test_a_running_gc_harms_nothing(store: GitMemoryStore, write: Write, git: Git, root: Path) -> None:
    """While a person's git packs and prunes, writes are acknowledged and every version stays readable."""
    versions: list[tuple[str, str]] = []

    async def writing() -> None:
        for number in range(120):
            versions.append((f"text {number}", await write(f"n/{number % 7}.md", f"text {number}")))

    async def collecting() -> None:
        for _ in range(3):
            command = [
                "git",
                "-c",
                "safe.directory=*",
                "-c",
                "gc.autoDetach=false",
                "-C",
                str(root),
                "gc",
                "-q",
            ]
            await anyio.run_process(command)

    async with anyio.create_task_group() as group:
        group.start_soon(writing)
        group.start_soon(collecting)
    for number, (text, version) in enumerate(versions):
        assert (await store.read(f"n/{number % 7}.md", version)).content == text
    assert git("fsck", "--full", "--strict", "--no-dangling") == ""


async def test_object_folders_removed_by_another_git_lose_no_write(
    store: GitMemoryStore, write: Write, git: Git
) -> None:
    """git removes a folder of objects when it is empty, also one that was made for the object of this moment."""
    written = anyio.Event()

    async def writing() -> None:
        for number in range(300):
            await write(f"n/{number % 7}.md", f"text {number}")
        written.set()

    async with anyio.create_task_group() as group:
        group.start_soon(writing)
        while not written.is_set():
            await anyio.to_thread.run_sync(git, "repack", "-a", "-d", "-q")
            await anyio.to_thread.run_sync(git, "prune-packed", "-q")
    assert (await store.read("n/5.md")).content == "text 299"
    assert git("fsck", "--full", "--strict", "--no-dangling") == ""


async def test_a_lock_of_another_git_is_waited_for(store: GitMemoryStore, write: Write, root: Path) -> None:
    """A branch that another git locks for a moment delays a write; one that stays locked refuses it and says why."""
    lock = root / ".git/refs/heads/main.lock"
    lock.write_text("")

    async def release() -> None:
        await anyio.sleep(0.3)
        lock.unlink()

    async with anyio.create_task_group() as group:
        group.start_soon(release)
        await write("a.md", "one")
    lock.write_text("")
    with pytest.raises(Refusal) as refused:
        await write("a.md", "two")
    assert refused.value.code == "write_failure"
    assert "another program" in refused.value.message
    assert "main.lock" in refused.value.message
    assert (await store.read("a.md")).content == "one"
    lock.unlink()
    await write("a.md", "three")


async def test_a_git_index_locked_by_another_process_delays_nothing(
    store: GitMemoryStore, write: Write, root: Path
) -> None:
    """Memory needs no git index: writes continue, and the doctor reports the lock until it is old."""
    lock = root / ".git/index.lock"
    lock.write_text("")
    await write("a.md", "one")
    found = {finding.id: finding for finding in await store.check(repair=True)}
    assert found["git.locks"].status == "warning"
    assert "index.lock" in found["git.locks"].summary
    long_ago = time.time() - 3_600
    os.utime(lock, (long_ago, long_ago))
    found = {finding.id: finding for finding in await store.check(repair=True)}
    assert found["git.locks"].status == "repaired"
    assert not lock.exists()


def person(root: Path, *arguments: str, said: bytes = b"", when: str = "2026-01-01T00:00:00") -> str:
    """Return what git prints for a person who commits ``said`` at a time of its own."""
    command = ["git", "-c", "safe.directory=*", "-c", "user.name=A", "-c", "user.email=a@b", "-C", str(root)]
    environ = {**os.environ, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    done = subprocess.run([*command, *arguments], input=said, env=environ, capture_output=True, check=True)
    return done.stdout.decode().strip()


async def test_commits_with_unusual_authors_and_times_are_read(
    opened: Opened, closed: list[str], root: Path, git: Git
) -> None:
    """A clock that jumps, a name that is not text, an empty message: history, blame and index continue in order."""
    for when, text in (("2001-01-01T00:00:00", "past"), ("2037-01-01T00:00:00", "future")):
        (root / "notes/a.md").write_text(f"text 3\n{text}\n")
        git("add", "-A")
        person(root, "commit", "-q", "--allow-empty-message", "-m", "", when=when)
    blob = git("rev-parse", "HEAD:notes/a.md").strip()
    bad = person(root, "mktree", "-z", said=b"100644 blob " + blob.encode() + b"\tna\xefve.md\0")
    tree = person(root, "mktree", said=(git("ls-tree", "HEAD") + f"040000 tree {bad}\tbad\n").encode())
    git("reset", "-q", git("commit-tree", tree, "-p", "HEAD", "-m", "bad name").strip())
    async with opened() as store:
        await store.edit("notes/a.md", "future", "now", actor="ada", reason="after")
        messages = [change.message for change in await store.history("notes/a.md", limit=3)]
        assert messages == ["after", "", ""]
        assert [span.author for span in (await store.blame("notes/a.md")).spans] == ["ada", "ada"]
        assert (await store.search(SearchMemory(query="now")))[0].path == "notes/a.md"


# Anything at all ---------------------------------------------------------------------------------------------


async def test_random_damage_is_never_silent(opened: Opened, root: Path, git: Git) -> None:
    """Whichever loose object is damaged in whichever way, each version that history still returns has its original
    content."""
    dice = random.Random(7)
    async with opened() as store:
        versions = [
            (text, await store.change(Change({"n/a.md": text.encode()}, actor="a", reason="")))
            for text in (f"text {number}\n" for number in range(12))
        ]
    files = [file for file in (root / ".git/objects").glob("??/*") if len(file.name) == 38]
    head = git("rev-parse", "HEAD").strip()
    for file in dice.sample(files, 8):
        if file.parent.name + file.name != head:
            spoil(root, file.parent.name + file.name, dice.choice(("truncated", "empty", "garbage")))
    found = examined(root)
    assert found["git.objects"].status == "repaired"
    async with opened() as store:
        readable = 0
        for text, version in versions:
            try:
                assert (await store.read("n/a.md", version)).content == text
                readable += 1
            except Refusal:
                assert found["git.history"].status == "error"
        assert readable >= 4
        assert (await store.read("n/a.md")).content == "text 11\n"
