"""Looking back: who wrote a line, what differs between versions, taking a change back."""

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from trunkline.contracts.memory.history import MemoryBlame, RevertMemory
from trunkline.contracts.memory.store import Change
from trunkline_bus import Refusal, Scope
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Git = Callable[..., str]
Write = Callable[..., Awaitable[str]]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]


def authors(blame: MemoryBlame) -> list[tuple[str, str]]:
    """Each line with who wrote it."""
    return [(line, span.author) for span in blame.spans for line in span.lines]


# Blame -------------------------------------------------------------------------------------------------------


async def test_a_line_blames_to_actor_conversation_and_turn(store: GitMemoryStore, write: Write) -> None:
    """Each line names who wrote it, in which conversation and turn, when and why; a range asks for some lines."""
    await write("a.md", "one\ntwo\nthree\n", actor="ada")
    scope = Scope(conversation="conv_1", turn="turn_9")
    change = Change({"a.md": b"one\n2\nthree\nfour\n"}, actor="agent", reason="Mend the count", scope=scope)
    version = await store.change(change)
    found = await store.blame("a.md")
    assert authors(found) == [("one", "ada"), ("2", "agent"), ("three", "ada"), ("four", "agent")]
    second = found.spans[1]
    assert (second.first, second.conversation, second.turn) == (2, "conv_1", "turn_9")
    assert (second.version, second.message, found.version) == (version, "Mend the count", version)
    assert authors(await store.blame("a.md", first=2, last=3)) == [("2", "agent"), ("three", "ada")]
    assert (await store.history("a.md", limit=1))[0].turn == "turn_9"


async def test_blame_follows_a_move_and_accepts_versions(store: GitMemoryStore, write: Write) -> None:
    """Lines keep their author when their file moves; at an older version the older text is blamed."""
    first = await write("a.md", "one\ntwo\n", actor="ada")
    await store.move("a.md", "notes/b.md", actor="mover", reason="")
    await store.edit("notes/b.md", "two", "zwei", actor="bob", reason="")
    assert authors(await store.blame("notes/b.md")) == [("one", "ada"), ("zwei", "bob")]
    assert authors(await store.blame("a.md", first)) == [("one", "ada"), ("two", "ada")]
    assert authors(await store.blame("notes/b.md", mainline=True)) == [("one", "mover"), ("zwei", "bob")]


async def test_blame_agrees_with_git(store: GitMemoryStore, write: Write, git: Git) -> None:
    """After a hundred random edits every line has the commit that ``git blame`` names."""
    dice, lines = random.Random(5), ["begin"]
    for number in range(100):
        at = dice.randrange(len(lines) + 1)
        lines[at : at + dice.choice((0, 0, 1, 2))] = [f"line {number}"] * dice.choice((1, 1, 2))
        await write("a.md", "".join(line + "\n" for line in lines), actor=f"a{number}")
    said = [line.split()[0] for line in git("blame", "-s", "-l", "--root", "a.md").splitlines()]
    found = await store.blame("a.md")
    assert [span.version for span in found.spans for _ in span.lines] == said


async def test_blame_follows_a_merge_to_the_commits_of_the_branch(
    opened: Opened, root: Path, git: Git
) -> None:
    """Lines that a person merged with git blame to the commits of the branch, and history lists those too."""
    async with opened() as store:
        await store.change(Change({"a.md": b"one\ntwo\nthree\n"}, actor="ada", reason=""))
    git("switch", "-q", "-c", "side")
    (root / "a.md").write_text("ONE\ntwo\nthree\n")
    git("commit", "-q", "-am", "side")
    git("switch", "-q", "main")
    async with opened() as store:
        await store.change(Change({"a.md": b"one\ntwo\nTHREE\n"}, actor="bob", reason="main"))
    git("merge", "-q", "-m", "both", "side")
    async with opened() as store:
        await store.edit("a.md", "two", "2", actor="cid", reason="after")
        assert authors(await store.blame("a.md")) == [("ONE", "Ada"), ("2", "cid"), ("THREE", "bob")]
        brought = (await store.blame("a.md", mainline=True)).spans
        assert [span.message for span in brought] == ["both", "after", "main"]
        messages = {change.message for change in await store.history("a.md", limit=9)}
        assert messages == {"after", "both", "main", "side", "Write a.md"}


@pytest.mark.parametrize(
    ("path", "version"), [("none.md", None), ("a.md", "feed"), ("../a", None), ("a", None)]
)
async def test_blame_of_nothing_is_refused(
    path: str, version: str | None, store: GitMemoryStore, write: Write
) -> None:
    """An unknown file, version or a path outside is refused, and so is a folder."""
    await write("a.md", "x")
    with pytest.raises(Refusal):
        await store.blame(path, version)


async def test_reading_an_old_version_is_unaffected_by_writes(store: GitMemoryStore, write: Write) -> None:
    """A reader of a file's history during writes receives its changes, and never an empty history."""
    await write("a.md", "one\n", actor="ada")

    async def others(who: int) -> None:
        for number in range(10_000):
            await write(f"{who}.md", f"{number}\n")

    async with anyio.create_task_group() as group:
        for who in range(3):
            group.start_soon(others, who)
        for _ in range(12):
            assert authors(await store.blame("a.md")) == [("one", "ada")]
            assert [file.path for file in (await store.diff("a.md")).files] == ["a.md"]
            undone = await store.revert(RevertMemory(path="a.md", actor="owner"))
            await store.revert(RevertMemory(path="a.md", actor="ada"))
            assert undone.paths == ("a.md",)
            await write("a.md", "one\n", actor="ada")
        group.cancel_scope.cancel()


# What the derived table may go through -----------------------------------------------------------------------


@pytest.mark.parametrize("harm", ["gone", "garbage", "truncated"])
async def test_history_needs_no_table(harm: str, opened: Opened, tmp_path: Path) -> None:
    """Without its derived table, or with a broken one, history and blame are unchanged."""
    async with opened() as store:
        for number in range(5):
            await store.change(Change({"a.md": b"x\n" * number}, actor=f"a{number}", reason=""))
        before = (await store.history("a.md", limit=9), await store.blame("a.md"))
    table = tmp_path / "cache/memory-history.db"
    if harm == "gone":
        table.unlink()
    elif harm == "garbage":
        table.write_bytes(b"no database" * 1000)
    else:
        table.write_bytes(table.read_bytes()[:5000])
    async with opened() as store:
        assert (await store.history("a.md", limit=9), await store.blame("a.md")) == before


async def test_removed_history_is_dropped_from_the_index(opened: Opened, git: Git) -> None:
    """When a person resets the branch in git, the dropped commits are in no history."""
    async with opened() as store:
        for text in ("one\n", "one\ntwo\n", "one\ntwo\nthree\n"):
            await store.change(Change({"a.md": text.encode()}, actor=text[-4:-1], reason=""))
        assert len(await store.history("a.md", limit=9)) == 3
    git("reset", "-q", "--hard", "HEAD~2")
    async with opened() as store:
        await store.edit("a.md", "one", "eins", actor="ada", reason="")
        assert [change.author for change in await store.history("a.md", limit=9)] == ["ada", "one"]
        assert authors(await store.blame("a.md")) == [("eins", "ada")]


# Differences -------------------------------------------------------------------------------------------------


async def test_a_difference_is_a_patch(store: GitMemoryStore, write: Write, git: Git, root: Path) -> None:
    """Between two versions the text is a patch that git applies; without an older one it is the last change's."""
    first = await write("notes/a.md", "one\ntwo\n")
    await write("notes/b.md", "new\n")
    last = await write("notes/a.md", "one\n2\n")
    found = await store.diff("notes", first, last)
    assert [(file.path, file.kind, file.added, file.removed) for file in found.files] == [
        ("notes/a.md", "changed", 1, 1),
        ("notes/b.md", "added", 1, 0),
    ]
    (root.parent / "a.patch").write_text(found.text)
    git("apply", "--check", "--reverse", str(root.parent / "a.patch"))
    assert "-two\n+2\n" in (await store.diff("notes/a.md")).text
    assert (await store.diff("notes/b.md", first)).files[0].kind == "added"
    assert (await store.diff("notes/a.md", last, last)).files == ()


async def test_a_difference_of_nothing_is_refused(store: GitMemoryStore) -> None:
    """An unknown version, and a path where there was never anything."""
    for arguments in (("AGENT.md", "feed"), ("none.md",), ("AGENT.md", None, "beef")):
        with pytest.raises(Refusal) as refused:
            await store.diff(*arguments)
        assert refused.value.code == "not_found"


# Taking back -------------------------------------------------------------------------------------------------


async def test_one_revert_undoes_the_last_change(store: GitMemoryStore, write: Write) -> None:
    """The file has its earlier content, in a separate commit that names the revert; reverting that commit restores
    the change."""
    await write("a.md", "one\n")
    wrong = await write("a.md", "wrong\n", actor="agent")
    done = await store.revert(RevertMemory(path="a.md", actor="owner"))
    assert (done.paths, done.undone) == (("a.md",), wrong)
    assert (await store.read("a.md")).content == "one\n"
    newest = (await store.history("a.md", limit=1))[0]
    assert (newest.author, newest.message) == ("owner", f"Revert {wrong[:10]}: Write a.md")
    await store.revert(RevertMemory(path="a.md", actor="owner"))
    assert (await store.read("a.md")).content == "wrong\n"


async def test_a_revert_keeps_later_changes(store: GitMemoryStore, write: Write) -> None:
    """An older change is taken back from under later ones of other lines."""
    await write("a.md", "one\ntwo\nthree\nfour\nfive\n")
    wrong = await write("a.md", "WRONG\ntwo\nthree\nfour\nfive\n")
    await write("a.md", "WRONG\ntwo\nthree\nfour\nFIVE\n")
    await store.revert(RevertMemory(path="a.md", version=wrong, actor="owner"))
    assert (await store.read("a.md")).content == "one\ntwo\nthree\nfour\nFIVE\n"


async def test_a_later_change_of_the_same_lines_is_reported(store: GitMemoryStore, write: Write) -> None:
    """When a later change conflicts nothing is changed, and the sentence names the next step."""
    await write("a.md", "one\n")
    wrong = await write("a.md", "wrong\n")
    await write("a.md", "right\n")
    with pytest.raises(Refusal) as refused:
        await store.revert(RevertMemory(path="a.md", version=wrong, actor="owner"))
    assert refused.value.code == "write_conflict"
    assert "changed again after that" in refused.value.message
    assert (await store.read("a.md")).content == "right\n"


async def test_a_whole_version_is_reverted(store: GitMemoryStore, write: Write, root: Path) -> None:
    """All files of a version, a deleted folder and an executable file included; or only those under a path."""
    await write("box/a.md", "a")
    (root / "box/run.sh").write_text("#!/bin/sh\n")
    (root / "box/run.sh").chmod(0o755)
    await store.edit("box/run.sh", "sh\n", "sh\n", actor="owner", reason="")
    version = await store.delete("box", actor="agent", reason="")
    await store.revert(RevertMemory(path="", version=version, actor="owner"))
    assert (await store.read("box/a.md")).content == "a"
    assert (root / "box/run.sh").stat().st_mode & 0o100
    both = await store.change(Change({"x.md": b"x", "box/a.md": b"b"}, actor="agent", reason=""))
    await store.revert(RevertMemory(path="box", version=both, actor="owner"))
    assert [(await store.read(path)).content for path in ("x.md", "box/a.md")] == ["x", "a"]


async def test_going_back_to_a_version(store: GitMemoryStore, write: Write) -> None:
    """A path has its content at a version again: changed files, deleted ones and new ones."""
    then = await write("box/a.md", "one")
    await write("box/a.md", "two")
    await write("box/new.md", "new")
    done = await store.revert(RevertMemory(path="box", to=then, actor="owner"))
    assert done.undone == then
    assert [entry.path for entry in await store.list("box", recursive=True)] == ["box/a.md"]
    assert (await store.read("box/a.md")).content == "one"


async def test_nothing_to_revert_is_reported(store: GitMemoryStore, write: Write) -> None:
    """The cases are unknown versions, versions without a change there, and an already reverted change."""
    other = await write("b.md", "b")
    await write("a.md", "a")
    for request, code in (
        (RevertMemory(path="none.md", actor="o"), "not_found"),
        (RevertMemory(path="a.md", version="feed", actor="o"), "not_found"),
        (RevertMemory(path="a.md", version=other, actor="o"), "not_found"),
        (RevertMemory(path="a.md", to=other, actor="o"), "not_found"),
        (RevertMemory(path="../a.md", actor="o"), "invalid_path"),
    ):
        with pytest.raises(Refusal) as refused:
            await store.revert(request)
        assert refused.value.code == code
    await store.delete("b.md", actor="o", reason="")
    with pytest.raises(Refusal, match="nothing to revert"):
        await store.revert(RevertMemory(path="b.md", version=other, actor="o"))


async def test_an_external_edit_is_kept_when_a_change_is_reverted(
    store: GitMemoryStore, write: Write, root: Path
) -> None:
    """A person's later edit is committed first. It is kept when it touches other lines, and is a conflict when it
    does not."""
    await write("a.md", "one\ntwo\nthree\nfour\n")
    version = await write("a.md", "one\ntwo\nthree\nFOUR\n")
    (root / "a.md").write_text("MINE\ntwo\nthree\nFOUR\n")
    await store.revert(RevertMemory(path="a.md", version=version, actor="owner"))
    assert (await store.read("a.md")).content == "MINE\ntwo\nthree\nfour\n"


# Expected states ---------------------------------------------------------------------------------------------


async def test_edits_moves_and_deletions_check_the_expected_content(
    store: GitMemoryStore, write: Write
) -> None:
    """Each is refused when the file was changed since it was read, and goes through when it was not."""
    await write("a.md", "one")
    stale = (await store.read("a.md")).hash
    await write("a.md", "two")
    attempts = (
        lambda known: store.edit("a.md", "two", "three", actor="a", reason="", expected=known),
        lambda known: store.move("a.md", "b.md", actor="a", reason="", expected=known),
        lambda known: store.delete("b.md", actor="a", reason="", expected=known),
    )
    for attempt, path in zip(attempts, ("a.md", "a.md", "b.md"), strict=True):
        with pytest.raises(Refusal) as refused:
            await attempt(stale)
        assert refused.value.code == "write_conflict"
        await attempt((await store.read(path)).hash)
    with pytest.raises(Refusal):
        await store.read("b.md")
