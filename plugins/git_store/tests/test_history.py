"""History: every state that was acknowledged, who made it and why, readable with plain git."""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from trunkline.contracts.memory.files import MemoryChanged
from trunkline.contracts.memory.initial_files import INITIAL_FILES
from trunkline.contracts.memory.store import Change
from trunkline_bus import Refusal, Scope
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Git = Callable[..., str]
Write = Callable[..., Awaitable[str]]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]


async def test_history_gives_changes_and_states_before(store: GitMemoryStore, write: Write) -> None:
    """PA-T6, ARCH-9: three writes, three records newest first, previous states, the limit, and content at a commit."""
    versions = [await write("a.md", text) for text in ("one", "two", "three")]
    changes = await store.history("a.md", limit=50)
    assert [change.version for change in changes] == versions[::-1]
    assert [change.previous for change in changes] == ["two", "one", None]
    assert [change.message for change in changes] == ["Write a.md"] * 3
    assert len(await store.history("a.md", limit=2)) == 2
    assert await store.history("a.md", limit=0) == ()
    assert (await store.read("a.md", versions[0])).content == "one"
    assert (await store.read("a.md", versions[0][:10])).content == "one"


async def test_history_of_a_deleted_file_remains(store: GitMemoryStore, write: Write) -> None:
    """A deleted file's changes are listed, its deletion first, with its last content."""
    await write("a.md", "one")
    await store.delete("a.md", actor="owner", reason="not needed")
    deletion, creation = await store.history("a.md", limit=5)
    assert (deletion.message, deletion.author, deletion.previous) == ("not needed", "owner", "one")
    assert creation.previous is None


async def test_history_of_a_folder_is_that_of_all_in_it(store: GitMemoryStore, write: Write) -> None:
    """Changes of any file below count, others do not."""
    await write("a/x.md", "1")
    await write("b.md", "2")
    await write("a/y.md", "3")
    assert [change.message for change in await store.history("a", limit=9)] == [
        "Write a/y.md",
        "Write a/x.md",
    ]


async def test_lines_blame_to_actor_conversation_and_turn(store: GitMemoryStore, git: Git) -> None:
    """Each commit names its actor as author, and actor, conversation and turn in trailers."""
    scope = Scope(conversation="conv_1", turn="turn_9")
    await store.change(Change({"a.md": b"one\n"}, actor="agent", reason="Why: because", scope=scope))
    await store.edit("a.md", "one\n", "one\ntwo\n", actor="owner", reason="")
    authors = [line.split("(")[1].split(" 2")[0] for line in git("blame", "a.md").splitlines()]
    assert authors == ["agent", "owner"]
    keys = (
        "%(trailers:key=Actor,valueonly)%(trailers:key=Conversation,valueonly)%(trailers:key=Turn,valueonly)"
    )
    assert git("log", "-1", "--skip=1", f"--format=%s|{keys}").split() == [
        "Why:",
        "because|agent",
        "conv_1",
        "turn_9",
    ]
    assert (await store.history("a.md", limit=1))[0].message == "Edit a.md"


async def test_a_group_commit_separates_its_callers(store: GitMemoryStore, git: Git) -> None:
    """Writes that share a commit share their origin; different actors get commits of their own."""
    async with anyio.create_task_group() as group:
        for number in range(30):
            change = Change({f"n/{number}.md": b"x"}, actor=f"actor{number % 2}", reason="")
            group.start_soon(store.change, change)
    for number in range(30):
        assert git("log", "--format=%an", "--", f"n/{number}.md").split() == [f"actor{number % 2}"]
    assert int(git("rev-list", "--count", "HEAD")) < 20


async def test_unusual_actors_and_reasons_are_escaped(store: GitMemoryStore, git: Git) -> None:
    """Names that git could misread and reasons with newlines or trailers are stored unchanged."""
    for number, actor in enumerate(("", "<>\n\0", "a <b@c>", "ünï " * 100, "...")):
        reason = "first\n\nActor: forged\0\n"
        await store.change(Change({f"{number}.md": b"x"}, actor=actor, reason=reason))
    assert git("fsck", "--full", "--strict", "--no-dangling") == ""
    assert git("log", "-1", "--format=%s", "--", "0.md").strip() == "first"


async def test_every_commit_is_published(opened: Opened) -> None:
    """``on_change`` gets the paths, the version and the actor of each commit."""
    reported: list[MemoryChanged] = []
    async with opened(on_change=reported.append) as store:
        reported.clear()  # the first files
        version = await store.change(Change({"a.md": b"x"}, actor="agent", reason=""))
    assert reported == [MemoryChanged(paths=("a.md",), version=version, actor="agent")]


async def test_plain_tools_read_memory_while_nothing_runs(opened: Opened, root: Path, git: Git) -> None:
    """ARCH-1: with nothing running, the files open in an editor, git shows history, and the tree is clean."""
    async with opened() as store:
        await store.change(Change({"notes/a.md": "Grüße\n".encode()}, actor="agent", reason="Greet"))
    assert (root / "notes/a.md").read_text(encoding="utf-8") == "Grüße\n"
    assert git("status", "--porcelain") == ""
    assert git("log", "--format=%an: %s").splitlines() == ["agent: Greet", "trunkline: Begin this memory"]
    assert git("show", "HEAD:notes/a.md") == "Grüße\n"


async def test_external_edits_are_committed(opened: Opened, root: Path, git: Git) -> None:
    """A person's additions, changes and deletions made while memory was stopped are committed as that person's at
    the next start."""
    async with opened() as store:
        await store.change(Change({"a.md": b"agent", "b.md": b"agent"}, actor="agent", reason=""))
    (root / "a.md").write_text("mine")
    (root / "b.md").unlink()
    (root / "new").mkdir()
    (root / "new/c.md").write_text("new")
    async with opened() as store:
        assert (await store.read("a.md")).content == "mine"
        change = (await store.history("a.md", limit=1))[0]
        assert (change.author, change.message, change.previous) == ("owner", "Edited by hand", "agent")
    assert git("show", "--format=", "--name-status", "HEAD").split() == [
        "M",
        "a.md",
        "D",
        "b.md",
        "A",
        "new/c.md",
    ]
    assert git("status", "--porcelain") == ""


async def test_external_edits_are_committed_before_they_are_overwritten(
    store: GitMemoryStore, write: Write, root: Path
) -> None:
    """A write over an uncommitted hand edit commits the edit first; a stale hash is refused."""
    await write("a.md", "one")
    seen = (await store.read("a.md")).hash
    (root / "a.md").write_text("by hand")
    with pytest.raises(Refusal) as refused:
        await store.change(Change({"a.md": b"two"}, actor="a", reason=""), expected={"a.md": seen})
    assert refused.value.code == "write_conflict"
    await write("a.md", "three")
    changes = await store.history("a.md", limit=5)
    assert [(change.author, change.previous) for change in changes] == [
        ("agent", "by hand"), ("owner", "one"), ("agent", None),
    ]  # fmt: skip


async def test_a_removed_file_can_be_written_again(store: GitMemoryStore, write: Write, root: Path) -> None:
    """Writing the same text again restores a file that a person removed."""
    await write("a.md", "one")
    (root / "a.md").unlink()
    await write("a.md", "one")
    assert (root / "a.md").read_text() == "one"


async def test_commits_made_with_git_are_adopted(
    store: GitMemoryStore, write: Write, root: Path, git: Git
) -> None:
    """A person may use git in the root while memory is open; later writes build on it."""
    await write("a.md", "one")
    (root / "b.md").write_text("mine")
    git("add", "b.md")
    git("commit", "-m", "By me", "--", "b.md")
    await write("c.md", "three")
    assert git("log", "--format=%s").splitlines()[:2] == ["Write c.md", "By me"]
    assert git("fsck", "--strict", "--no-dangling") == ""


async def test_ignored_files_are_not_committed(opened: Opened, root: Path, git: Git) -> None:
    """Files that .gitignore names, links, repositories in the root and files for secrets are not committed."""
    async with opened():
        (root / ".gitignore").write_text("*.tmp\n")
        (root / "x.tmp").write_text("x")
        (root / "link").symlink_to("/etc/passwd")
        (root / "prod.env").write_text("KEY=1")
        (root / "inner/.git").mkdir(parents=True)
        (root / "inner/x.md").write_text("x")
    async with opened():
        pass
    assert git("ls-files").split() == sorted(INITIAL_FILES)


async def test_packing_keeps_everything(store: GitMemoryStore, write: Write, git: Git, root: Path) -> None:
    """Loose objects move into packs, many packs into one, during writes; every version stays readable."""
    versions = [await write("a.md", f"text {number}") for number in range(30)]
    for number in range(22):
        await write(f"p{number}.md", "x")
        await store.pack(now=True)
    async with anyio.create_task_group() as group:
        group.start_soon(store.pack)
        for number in range(20):
            group.start_soon(write, f"q{number}.md", "y")
    await store.pack(now=True)
    packs = sorted(pack.stat().st_size for pack in (root / ".git/objects/pack").glob("*.pack"))
    assert all(larger >= 2 * sum(packs[:number]) for number, larger in enumerate(packs))
    for number, version in enumerate(versions):
        assert (await store.read("a.md", version)).content == f"text {number}"
    assert (await store.read("q19.md")).content == "y"
    assert git("fsck", "--full", "--strict", "--no-dangling") == ""


async def test_git_status_shows_no_changes_after_commits_of_memory(
    store: GitMemoryStore, write: Write, git: Git
) -> None:
    """While memory works, ``git status`` in the root is soon clean after a write: a person's ``git commit`` there
    records only that person's changes."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run_maintenance)
        await write("a.md", "one")
        with anyio.fail_after(60):
            while git("status", "--porcelain"):  # noqa: ASYNC110 - another program is asked
                await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("body", ["\n" * 300_000, "Actor: owner\n" * 50_000])
async def test_any_commit_reason_is_parsed_in_linear_time(store: GitMemoryStore, body: str) -> None:
    """A reason may be of any length and shape, and never passes for the mark of who made the change."""
    change = Change({"a.md": b"one"}, actor="agent", reason=f"Why\n\n{body}x")
    await store.change(change)
    begun = time.process_time()
    (made,) = await store.history("a.md", limit=1)
    assert (made.author, made.message.partition("\n")[0]) == ("agent", "Why")
    assert made.message.endswith("x")
    assert time.process_time() - begun < 5.0
