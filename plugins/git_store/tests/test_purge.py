"""Taking something out of all of history: it is gone from every object, and nothing else is changed (C43, RLM-T16)."""

import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from trunkline.acl.roles import all_roles
from trunkline.contracts import subjects
from trunkline.contracts.conversations.messages import AppendConversation, Message
from trunkline.contracts.memory.purge import MemoryPurged, PurgeMemory
from trunkline.contracts.memory.purger import Purger
from trunkline.workers.memory.change_rules import PurgedTurnRule
from trunkline.workers.memory.purge.service import PurgeService
from trunkline_bus import Refusal, Scope
from trunkline_git_store.store import GitMemoryStore

from .chunks.conftest import Chunks, chunks_in

pytestmark = pytest.mark.anyio

Git = Callable[..., str]
Write = Callable[..., Awaitable[str]]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]


@pytest.fixture
async def chunks(store: GitMemoryStore) -> Chunks:
    return await chunks_in(store)


async def purge(
    chunks: Chunks, target: str, confirm: str | None = None, purgers: tuple[Purger, ...] = ()
) -> MemoryPurged:
    """Purge as the owner does, with nothing around memory."""
    request = PurgeMemory(target=target, confirm=confirm or target, actor="owner", reason="asked to")
    return await PurgeService(chunks.store, purgers, None, PurgedTurnRule()).purge(request, Scope())


def everything(git: Git) -> str:
    """All that the repository holds: the text of every object, led to or not."""
    names = [line.split()[0] for line in git("cat-file", "--batch-all-objects", "--batch-check").splitlines()]
    return "".join(git("cat-file", "-p", name) for name in names if "tree" not in git("cat-file", "-t", name))


async def test_rlm_t16_a_purged_chunk_is_in_no_object(chunks: Chunks, git: Git, root: Path) -> None:
    """RLM-T16: changed, archived, restored, packed: no object of the repository and no index has it any more."""
    chunk = await chunks.keep("The zebra is striped", tags=("zoo",))
    kept = await chunks.keep("The giraffe is tall")
    await chunks.link(chunk, kept, "supports")
    await chunks.store.pack(now=True)
    await chunks.delete(chunk)
    await chunks.restore(chunk)
    assert "zebra" in everything(git)
    done = await purge(chunks, chunk)
    assert len(done.paths) == 2
    assert done.commits > 0
    assert "zebra" not in everything(git)
    assert "giraffe" in everything(git)
    git("fsck", "--strict", "--no-dangling")
    assert await chunks.get(chunk, archived=True) is None
    assert list((await chunks.recall("zebra giraffe")).source_chunks) == [kept]
    assert b"zebra" not in b"".join(file.read_bytes() for file in root.parent.rglob("*") if file.is_file())


async def test_a_purge_keeps_all_other_content_byte_for_byte(
    chunks: Chunks, write: Write, git: Git, root: Path
) -> None:
    """Commits before keep their ids; those after keep author, time, message and every other file; tags move along."""
    await write("a.md", "one", actor="ada")
    before = git("rev-parse", "HEAD").strip()
    await write("secret.md", "zebra")
    await write("b.md", "two", actor="bob")
    git("tag", "-a", "v1", "-m", "first")
    git("branch", "side")
    await write("secret.md", "zebra again")
    await write("a.md", "three", actor="ada")

    def log(names: str) -> list[str]:
        return git("log", "--reverse", "--format=%an|%at|%cn|%ct|%B%n--", names).splitlines()

    def files(version: str) -> set[str]:
        return {line for line in git("ls-tree", "-r", version).splitlines() if "secret" not in line}

    logged, tagged = log("HEAD"), files("v1")
    done = await purge(chunks, "secret.md")
    assert done.paths == ("secret.md",)
    assert git("merge-base", "--is-ancestor", before, "HEAD") == ""
    assert log("HEAD")[: len(logged)] == logged
    for name in ("v1", "side"):
        assert "secret.md" not in git("ls-tree", "-r", "--name-only", name)
    assert files("v1") == tagged
    assert "first" in git("cat-file", "-p", "v1")
    assert "zebra" not in everything(git)
    git("fsck", "--strict")
    assert [change.author for change in await chunks.store.history("a.md", limit=5)] == ["ada", "ada"]
    assert [change.previous for change in await chunks.store.history("a.md", limit=5)] == ["one", None]
    with pytest.raises(Refusal):
        await chunks.store.history("secret.md", limit=5)


async def test_a_folder_is_purged_with_all_in_it(chunks: Chunks, write: Write, git: Git) -> None:
    """A path selects everything below it, and no name that merely has the same prefix."""
    for name in ("old/a.md", "old/deep/b.md", "older.md"):
        await write(name, f"text of {name}")
    done = await purge(chunks, "old")
    assert done.paths == ("old/a.md", "old/deep/b.md")
    assert "text of older.md" in everything(git)
    assert "text of old/" not in everything(git)


async def test_a_similar_conversation_is_not_purged(chunks: Chunks, git: Git) -> None:
    """Boilerplate of the agent is in all conversations: a conversation deleted before the purged one began is not
    the same one under another name. Its owner was told that history keeps it."""
    always = "No model is configured. To talk to one, set a key and start again; init asks for both.\n" * 3
    for number, said in enumerate(("Tomatoes like warm feet", "My doctor says that I need a rest")):
        name = f"conv_{number}"
        messages = tuple(
            Message(id=f"m{number}{role}", role=role, content=text)
            for role, text in (("user", said), ("assistant", always))
        )
        request = AppendConversation(block="main", conversation=name, messages=messages, actor="gateway")
        await chunks.store.append_conversation(request)
        if not number:
            (path,) = [one for one in git("ls-tree", "-r", "--name-only", "HEAD").split() if name in one]
            await chunks.store.delete(path, actor="owner", reason="no longer wanted")
    (path,) = [one for one in git("ls-tree", "-r", "--name-only", "HEAD").split() if "conv_1" in one]
    await purge(chunks, path)
    assert "doctor" not in everything(git)
    assert "Tomatoes" in everything(git)


async def test_a_purge_is_noted(chunks: Chunks, write: Write, root: Path) -> None:
    """The note says who took out what, when and why, and is itself in history."""
    await write("secret.md", "zebra")
    done = await purge(chunks, "secret.md")
    note = json.loads((root / "audit/purges.jsonl").read_text())
    assert (note["actor"], note["target"], note["reason"]) == ("owner", "secret.md", "asked to")
    assert note["paths"] == ["secret.md"]
    ended, begun = await chunks.store.history("audit/purges.jsonl", limit=5)
    assert (ended.version, note["state"]) == (done.version, "done")
    assert '"begun"' in (ended.previous or "") and begun.previous is None


async def test_purge_records_are_never_purged(chunks: Chunks, write: Write, root: Path) -> None:
    """Purged text must not return, so the purge records are not purged, and a damaged record file is not
    overwritten."""
    await write("secret.md", "zebra")
    await write("audit/purges.jsonl", '{"target": "x", "paths": ["x"]}')
    for target in ("audit", "audit/purges.jsonl"):
        with pytest.raises(Refusal, match="cannot be purged"):
            await purge(chunks, target)
    await purge(chunks, "secret.md")
    lines = (root / "audit/purges.jsonl").read_text().splitlines()
    assert [json.loads(line)["paths"] for line in lines] == [["x"], ["secret.md"]]


async def test_a_wrong_confirmation_purges_nothing(chunks: Chunks, write: Write, git: Git) -> None:
    """Without the confirmation, for what never was, and for no path nothing is changed."""
    await write("a.md", "one")
    before = git("rev-parse", "HEAD")
    for target, confirm, code in (
        ("a.md", "yes", "not_confirmed"),
        ("never.md", "never.md", "not_found"),
        ("chunk-2026-05-04-00000000", "chunk-2026-05-04-00000000", "not_found"),
        ("../x", "../x", "invalid_path"),
        ("/", "/", "invalid_path"),
    ):
        with pytest.raises(Refusal) as refused:
            await purge(chunks, target, confirm)
        assert refused.value.code == code
    assert git("rev-parse", "HEAD") == before


async def test_writes_continue_after_a_purge(chunks: Chunks, opened: Opened, write: Write, git: Git) -> None:
    """Later writes are committed on the new history, before and after a restart."""
    await write("secret.md", "zebra")
    await purge(chunks, "secret.md")
    await write("a.md", "one")
    await chunks.store.edit("a.md", "one", "two", actor="agent", reason="")
    assert git("show", "HEAD:a.md") == "two"
    git("fsck", "--strict")


async def test_an_interrupted_sweep_is_finished_at_the_next_start(
    opened: Opened, root: Path, git: Git
) -> None:
    """A purge that died before the objects were swept: the next start sweeps."""
    async with opened():
        pass
    (root / "left.txt").write_text("zebra")
    loose = git("hash-object", "-w", "left.txt").strip()
    (root / "left.txt").unlink()
    (root / ".git/trunkline/purging").touch()
    async with opened() as store:
        assert (await store.read("AGENT.md")).content
    assert not (root / ".git/trunkline/purging").exists()
    assert loose not in git("cat-file", "--batch-all-objects", "--batch-check")
    git("fsck", "--strict")


def test_only_the_owner_may_purge() -> None:
    """C43: no worker that a model or a channel can move has the right to ask for it."""
    allowed = {
        role.name
        for role in all_roles(("telegram",), ("far",), ("acme",))
        if subjects.MEMORY_PURGE in role.calls
    }
    assert allowed == {"operator"}
