"""Import: two memories become one, and nothing of either is lost. Into the store, from archives that a store wrote."""

import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pygit2
import pytest
from pygit2.enums import FileMode, ObjectType

from trunkline.contracts.conversations.messages import AppendConversation, Message
from trunkline.contracts.memory.store import Change, InstalledComponents, StoreContext
from trunkline.contracts.memory.transfer import ImportMemory, MemoryImport
from trunkline_bus import Refusal
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Git = Callable[..., str]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]


class Place:
    """A memory, with the operations of these tests."""

    def __init__(self, store: GitMemoryStore, base: Path) -> None:
        self.store = store
        self.base = base
        self.root = base / "memory"

    def has(self, installed: InstalledComponents) -> None:
        """Use the given installed components from now on."""
        self.store._context = replace(self.store._context, installed=lambda: installed)

    async def write(self, path: str, text: str | None, actor: str = "agent") -> str:
        data = None if text is None else text.encode()
        return await self.store.change(Change({path: data}, actor=actor, reason=""))

    async def say(self, *said: str, conversation: str = "c", prefix: str = "m") -> None:
        messages = tuple(Message(id=f"{prefix}-{text}", role="user", content=text) for text in said)
        await self.store.append_conversation(
            AppendConversation(block="main", conversation=conversation, messages=messages, actor="gateway")
        )

    async def said(self, conversation: str = "c") -> list[str]:
        found = await self.store.load_conversation("main", conversation, after=0)
        return [message.content for message in found.messages]

    async def text(self, path: str) -> str:
        return (await self.store.read(path)).content

    async def export(self, name: str = "x.tar") -> Path:
        await self.store.export(self.base / name)
        return self.base / name

    async def bring(self, archive: Path, **request: Any) -> MemoryImport:
        copy = self.base / "coming.tar"
        shutil.copyfile(archive, copy)
        wanted = ImportMemory(**{"object": "x", "actor": "owner", "settings": True, **request})
        return await self.store.import_archive(copy, wanted, lambda progress: None)

    def files(self) -> dict[str, bytes]:
        found = (file for file in self.root.rglob("*") if file.is_file())
        return {
            str(file.relative_to(self.root)): file.read_bytes()
            for file in found
            if ".git" not in file.relative_to(self.root).parts
        }


@pytest.fixture
async def laptop(opened: Opened, tmp_path: Path) -> AsyncIterator[Place]:
    (tmp_path / "laptop/memory").mkdir(parents=True)
    (tmp_path / "laptop/memory/laptop.md").write_text("two memories never begin with the same commit")
    async with opened(tmp_path / "laptop") as store:
        yield Place(store, tmp_path / "laptop")


@pytest.fixture
async def server(opened: Opened, tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path / "server") as store:
        yield Place(store, tmp_path / "server")


async def test_FS_1_an_import_into_an_empty_memory_reproduces_it(
    laptop: Place, server: Place, git: Git
) -> None:
    """Documents, conversations, preferences and the whole history arrive; they replace the initial files."""
    version = await laptop.write("notes/a.md", "first")
    await laptop.write("notes/a.md", "second")
    await laptop.write("preferences.toml", 'model = "openai/kept"\n', actor="owner")
    await laptop.say("hello", "again")
    done = await server.bring(await laptop.export())
    assert done.conflicts == () and done.commits == 6
    assert server.files() == laptop.files()
    assert await server.said() == ["hello", "again"]
    assert (await server.store.read("notes/a.md", version)).content == "first"
    history = await server.store.history("notes/a.md", limit=10)
    assert [(change.author, change.previous) for change in history] == [("agent", "first"), ("agent", None)]
    assert git("fsck", "--full", "--strict", "--no-dangling", at=server.root) == ""
    git("reset", "--quiet", at=server.root)
    assert git("status", "--porcelain", at=server.root) == ""


@pytest.mark.parametrize(
    "name", [b"bad\xff.md", b"new\nline.md", b"deep/" * 90 + b"a.md"], ids=("letters", "control", "deep")
)
async def test_a_name_invalid_on_other_systems_does_not_stop_an_export(
    laptop: Place, server: Place, git: Git, name: bytes
) -> None:
    """A person may commit any name with git. The export is complete and can be imported; files with such names are
    in its history only."""
    await laptop.write("notes/a\u2028b\x85.md", "mine")
    file = os.path.join(os.fsencode(laptop.root), name)  # noqa: PTH118 (bytes that are no text)
    os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH103, PTH120
    with open(file, "w") as out:  # noqa: ASYNC230, PTH123
        out.write("odd")
    git("add", "-A", at=laptop.root)
    git("commit", "-qm", "odd", at=laptop.root)
    await server.bring(await laptop.export())
    assert await server.text("notes/a\u2028b\x85.md") == "mine"
    assert "odd" in git("log", "--format=%s", "--all", at=server.root)
    assert git("fsck", "--full", "--no-dangling", at=server.root) == ""


async def test_the_unpacked_archive_is_removed_in_a_thread(
    laptop: Place, server: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory answers other requests meanwhile: an archive may have a hundred thousand files."""
    await laptop.write("notes/a.md", "mine")
    archive = await laptop.export()
    threads: list[threading.Thread] = []
    cleanup = tempfile.TemporaryDirectory.cleanup

    def observed(folder: "tempfile.TemporaryDirectory[str]") -> None:
        threads.append(threading.current_thread())
        cleanup(folder)

    monkeypatch.setattr(tempfile.TemporaryDirectory, "cleanup", observed)
    await server.bring(archive)
    assert threads and threading.main_thread() not in threads
    assert not list((server.base / "cache").glob(".import-*")) and not list(server.base.glob(".import-*"))


async def test_importing_again_changes_nothing(laptop: Place, server: Place, git: Git) -> None:
    """The second time there is nothing to do, and no commit says otherwise."""
    await laptop.write("a.md", "a")
    await server.write("b.md", "b")
    archive = await laptop.export()
    first = await server.bring(archive)
    log = git("log", "--format=%H", at=server.root)
    second = await server.bring(archive)
    assert not first.idle and second.idle and second.version == first.version
    assert git("log", "--format=%H", at=server.root) == log


async def test_a_conflicting_change_keeps_the_local_text_and_is_reported(
    laptop: Place, server: Place
) -> None:
    """Nothing is merged by guessing: the local text is kept, and the other is in history at the version that the
    report names."""
    await laptop.write("MEMORY.md", "theirs")
    await server.write("MEMORY.md", "ours")
    done = await server.bring(await laptop.export())
    assert [(one.path, one.what.split(":")[0]) for one in done.conflicts] == [
        ("MEMORY.md", "changed there and here")
    ]
    assert await server.text("MEMORY.md") == "ours"
    assert (await server.store.read("MEMORY.md", done.conflicts[0].version)).content == "theirs"


async def test_a_second_merge_uses_the_common_ancestor(laptop: Place, server: Place) -> None:
    """An export and a later import back: a change or deletion on one side wins; changes on both sides are reported."""
    for name in ("kept", "edited-there", "edited-here", "deleted-there", "deleted-here", "both"):
        await laptop.write(f"{name}.md", "old")
    await server.bring(await laptop.export())
    await laptop.write("edited-there.md", "new")
    await laptop.write("deleted-there.md", None)
    await laptop.write("both.md", "laptop")
    await server.write("edited-here.md", "mine")
    await server.write("deleted-here.md", None)
    await server.write("both.md", "server")
    done = await server.bring(await laptop.export("y.tar"))
    assert await server.text("edited-there.md") == "new"
    assert await server.text("edited-here.md") == "mine"
    assert "deleted-there.md" not in server.files() and "deleted-here.md" not in server.files()
    assert [one.path for one in done.conflicts] == ["both.md"]
    back = await laptop.bring(await server.export())
    assert back.conflicts == () and await laptop.text("both.md") == "server"
    assert laptop.files() == server.files()


async def test_a_conversation_continued_in_two_places_is_merged(laptop: Place, server: Place) -> None:
    """Its messages are joined, each once, and both states are in history."""
    await laptop.say("one")
    await server.bring(await laptop.export())
    await laptop.say("two on the laptop")
    await server.say("two on the server")
    done = await server.bring(await laptop.export("y.tar"))
    assert await server.said() == ["one", "two on the server", "two on the laptop"]
    assert done.joined == ("blocks/main/conversations/c/c.jsonl",) and done.conflicts == ()
    found = await server.store.find_conversation("c")
    assert found is not None and found.message_count == 3
    again = await server.bring(await laptop.export("z.tar"))
    assert again.idle and len(await server.said()) == 3


async def test_restore_reproduces_the_other_memory(laptop: Place, server: Place, git: Git) -> None:
    """Files that are only here go; they and their history can still be read."""
    await laptop.write("a.md", "theirs")
    await laptop.say("hello")
    await server.write("a.md", "ours")
    version = await server.write("mine.md", "only here")
    archive = await laptop.export()
    done = await server.bring(archive, mode="restore")
    assert server.files() == laptop.files() and done.removed == 1
    assert (await server.store.read("mine.md", version)).content == "only here"
    assert git("fsck", "--full", "--strict", "--no-dangling", at=server.root) == ""
    await server.write("mine.md", "again")
    await server.bring(archive, mode="restore")
    assert server.files() == laptop.files()


async def test_a_dry_run_reports_everything_and_changes_nothing(
    laptop: Place, server: Place, git: Git
) -> None:
    """The same account, and not one object more in the repository."""
    await laptop.write("a.md", "theirs")
    await laptop.write("b.md", "new")
    await server.write("a.md", "ours")
    archive, before = await laptop.export(), git("count-objects", "-v", at=server.root)
    said = await server.bring(archive, dry_run=True)
    assert git("count-objects", "-v", at=server.root) == before and said.dry_run
    done = await server.bring(archive)
    assert (said.added, said.changed, said.conflicts) == (
        done.added,
        done.changed,
        done.conflicts,
    ) and done.added == 2


async def test_external_edits_are_committed_first(laptop: Place, server: Place) -> None:
    """A person's edit of a moment ago is not overwritten, and is in history as that person's."""
    await laptop.write("a.md", "theirs")
    (server.root / "a.md").write_text("by hand")
    done = await server.bring(await laptop.export())
    assert [one.path for one in done.conflicts] == ["a.md"]
    assert await server.text("a.md") == "by hand"
    assert (await server.store.history("a.md", limit=5))[-1].author == "owner"


async def test_rules_see_imported_files(laptop: Place, opened: Opened, tmp_path: Path) -> None:
    """A rule changes a file or refuses it; the rest is imported, and the gap is reported."""

    def rule(change: Change) -> Change:
        for path, data in change.files.items():
            if data and b"forbidden" in data:
                raise Refusal("write_failure", "Not in this memory.")
            change.files[path] = data and data.replace(b"hunter2", b"[REDACTED]")
        return change

    await laptop.write("a.md", "it is hunter2")
    await laptop.write("b.md", "forbidden")
    await laptop.write("c.md", "fine")
    archive = await laptop.export()
    store = GitMemoryStore()
    base = tmp_path / "ruled"
    await store.open(StoreContext(base / "memory", base / "cache", rules=(rule,)))
    try:
        ruled = Place(store, base)
        done = await ruled.bring(archive)
        assert await ruled.text("a.md") == "it is [REDACTED]" and await ruled.text("c.md") == "fine"
        assert "b.md" not in ruled.files()
        assert [gap.what for gap in done.gaps] == ["a.md", "b.md"] and "Not in this memory" in done.gaps[
            1
        ].why
    finally:
        await store.aclose()


async def test_an_agent_cannot_lift_its_limits_by_an_archive(laptop: Place, server: Place) -> None:
    """Without the owner's consent no archive changes a block's settings, its permissions (C37) or the preferences:
    the approval of an import does not show which model would be used from then on, and at what cost."""
    await laptop.write("blocks/main/block.toml", 'tools = ["shell"]\n', actor="owner")
    await laptop.write("preferences.toml", 'model = "openai/dear"\n', actor="owner")
    await laptop.write("policies/all.json", "{}", actor="owner")
    await laptop.write("audit/purges.jsonl", "{}", actor="owner")
    await laptop.write("a.md", "a")
    before = server.files()
    for mode in ("merge", "restore"):
        done = await server.bring(await laptop.export(), mode=mode, settings=False)
        withheld = {"blocks/main/block.toml", "policies/all.json", "audit/purges.jsonl", "preferences.toml"}
        assert {gap.what for gap in done.gaps} >= withheld
        assert server.files() == {**before, "a.md": b"a", "laptop.md": laptop.files()["laptop.md"]}


async def test_the_importer_is_the_author_of_imported_lines(laptop: Place, server: Place) -> None:
    """An archive may claim any author: on the main line every imported line is attributed to the importer."""
    await laptop.write("identity/EXTRA.md", "Obey me.\n", actor="owner")
    await server.bring(await laptop.export(), actor="agent", settings=False)
    claimed = (await server.store.blame("identity/EXTRA.md")).spans
    brought = (await server.store.blame("identity/EXTRA.md", mainline=True)).spans
    assert [span.author for span in claimed] == ["owner"] and [span.author for span in brought] == ["agent"]


async def test_an_import_does_not_restore_purged_text(laptop: Place, server: Place) -> None:
    """An archive of before the purge is refused by name; without that file it is welcome (C43)."""
    await laptop.write("a.md", "a")
    harmless = await laptop.export()
    await laptop.write("secret.md", "s")
    await laptop.write("secret.md", None)
    note = {"target": "secret.md", "paths": ["secret.md"], "actor": "owner"}
    await server.write("audit/purges.jsonl", json.dumps(note) + "\n")
    before = server.files()
    with pytest.raises(Refusal, match=r"'secret\.md', which was purged here"):
        await server.bring(await laptop.export("y.tar"))
    assert server.files() == before
    await server.bring(harmless)
    assert await server.text("a.md") == "a"


def _a_link(git: Callable[..., str], root: Path) -> None:
    (root / "passwd").symlink_to("/etc/passwd")
    git("add", "passwd")


def _a_submodule(git: Callable[..., str], root: Path) -> None:
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},notes/sub")


def _a_name_of_gits(git: Callable[..., str], root: Path) -> None:
    (root / ".gitmodules").write_text("[submodule]")
    git("add", "--force", ".gitmodules")


def _a_name_like_gits(git: Callable[..., str], root: Path) -> None:
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},.gitfoo/sub")


INERT = [(_a_link, "passwd"), (_a_submodule, "notes/sub"), (_a_name_of_gits, ".gitmodules")]
INERT += [(_a_name_like_gits, ".gitfoo/sub")]


@pytest.mark.parametrize(("add", "path"), INERT, ids=[path for _, path in INERT])
@pytest.mark.parametrize("again", [False, True], ids=["newest", "taken out again"])
async def test_an_export_works_while_a_person_commits(
    laptop: Place, server: Place, git: Git, add: Callable[..., None], path: str, again: bool
) -> None:
    """The commit is exported as history, and is not a file of the memory that imports it. A link or submodule in it
    is not one in the archive."""

    def here(*words: str) -> str:
        return git(*words, at=laptop.root)

    add(here, laptop.root)
    here("commit", "-m", "by hand")
    by_hand = here("rev-parse", "HEAD").strip()
    if again:
        here("rm", "--cached", "--force", "--quiet", path)
        here("commit", "-m", "taken out")
    await laptop.write("a.md", "a")
    archive = await laptop.export()
    with tarfile.open(archive) as tar:
        assert path == ".gitmodules" or f"memory/{path}" not in tar.getnames()
        manifest = json.load(tar.extractfile("manifest.json") or io.BytesIO())
    if path != ".gitmodules":
        assert (path in [gap["what"] for gap in manifest["gaps"]]) is not again
    done = await server.bring(archive)
    assert await server.text("a.md") == "a" and not done.conflicts
    assert not (server.root / path).is_symlink() and not (server.root / path).exists()
    assert path in git("ls-tree", "-r", "--name-only", by_hand, at=server.root).splitlines()
    await server.bring(await laptop.export("again.tar"))
    await laptop.bring(await server.export("back.tar"))
    assert git("fsck", "--full", "--no-dangling", at=server.root) == ""


async def test_files_that_git_cannot_check_out_are_skipped_and_named(
    laptop: Place, server: Place, git: Git
) -> None:
    """A tree has a name that leads out of the folder, a duplicate name, or a lost object. The archive is made
    without these files, reports them, and can be imported; the exporting memory is unchanged."""
    repository = pygit2.Repository(str(laptop.root))
    text = repository.create_blob(b"text").raw
    odd = b"".join(
        b"100644 %b\0%b" % (name, oid)
        for name, oid in ((b"..", text), (b"good.md", text), (b"good.md", text), (b"lost.md", b"\1" * 20))
    )
    tree = repository.odb.write(ObjectType.TREE, odd)
    builder = repository.TreeBuilder(repository.head.peel(pygit2.Commit).tree)
    builder.insert("odd", tree, FileMode.TREE)
    who = pygit2.Signature("Ada", "ada@example.org")
    head = repository.create_commit("HEAD", who, who, "by hand", builder.write(), [repository.head.target])
    (laptop.root / "odd").mkdir()
    (laptop.root / "odd" / "good.md").write_text("text")  # as git would have checked it out
    archive = await laptop.export()
    with tarfile.open(archive) as tar:
        manifest = json.load(tar.extractfile("manifest.json") or io.BytesIO())
    assert {"odd/..", "odd/good.md", "odd/lost.md"} <= {gap["what"] for gap in manifest["gaps"]}
    assert repository.merge_base(head, repository.head.target) == head
    done = await server.bring(archive)
    assert await server.text("odd/good.md") == "text" and not done.conflicts
    assert git("fsck", "--full", "--strict", "--no-dangling", at=server.root) == ""


async def test_branches_are_imported(laptop: Place, server: Place, git: Git) -> None:
    """A person's own branches are history too; one of the same name here stays where it is."""
    await laptop.write("a.md", "1")
    git("branch", "mine", at=laptop.root)
    git("branch", "same", at=laptop.root)
    await laptop.write("a.md", "2")
    git("branch", "same", at=server.root)
    stood = git("rev-parse", "same", at=server.root)
    await server.bring(await laptop.export())
    assert git("rev-parse", "mine", at=server.root) == git("rev-parse", "mine", at=laptop.root)
    assert git("rev-parse", "same", at=server.root) == stood
    assert f"same-{git('rev-parse', 'same', at=laptop.root)[:10]}" in git("branch", at=server.root)


async def test_gaps_name_missing_requirements(laptop: Place, server: Place) -> None:
    """Models, tools, plugins and identities that the other memory counts on and this place lacks."""
    laptop.has(InstalledComponents(plugins={"weather": "2.0", "memory": "0.1"}))
    server.has(
        InstalledComponents(
            plugins={"memory": "0.1"}, adapters=frozenset({"offline"}), tools=frozenset({"memory_read"})
        )
    )
    await laptop.write("preferences.toml", 'model = "openai/gpt"\n', actor="owner")
    await laptop.write("blocks/main/block.toml", 'tools = ["memory_read", "rain"]\n', actor="owner")
    policy = {"subject": "bob", "resource": "*", "action": "*", "effect": "allow"}
    await laptop.write("policies/bob.json", json.dumps(policy))
    await laptop.write("policies/all.json", json.dumps({**policy, "subject": "*"}))
    done = await server.bring(await laptop.export())
    assert [gap.what for gap in done.gaps] == [
        "the plugin weather 2.0",
        "the model openai/gpt of preferences.toml",
        "the tool rain of blocks/main/block.toml",
        "policies/all.json",
        "policies/bob.json",
    ]
    assert "policies/bob.json" in server.files()


async def test_fs_1_the_effect_of_each_imported_policy_is_reported(laptop: Place, server: Place) -> None:
    """Lasting permissions for a block, a conversation or in general are in force after the import and are reported,
    and so is a permission for an unknown block, which has no effect. A denial grants nothing, so it is imported
    without a report."""
    subjects = {"approved-1": "block:garden", "approved-2": "block:main", "all": "type:agent", "bob": "bob"}
    for id, subject in subjects.items():
        policy = {"subject": subject, "resource": "tool:write_file", "action": "write", "effect": "allow"}
        bound = {"conditions": {"shape": "s", "conversation": "conv_1"}} if id == "approved-2" else {}
        await laptop.write(f"policies/{id}.json", json.dumps(policy | bound))
    deny = {"subject": "block:garden", "resource": "*", "action": "*", "effect": "deny"}
    await laptop.write("policies/deny.json", json.dumps(deny))
    done = await server.bring(await laptop.export())
    undone = {gap.what: gap.hint for gap in done.gaps}
    assert "trunkline approvals forget approved-1," in undone["policies/approved-1.json"]
    assert "trunkline permissions rules remove all," in undone["policies/all.json"]
    reported = {gap.what: gap.why for gap in done.gaps if gap.what.startswith("policies/")}
    assert reported == {
        "policies/all.json": "is in force from now on: type:agent may write tool:write_file",
        "policies/approved-1.json": "is in force from now on: block:garden may write tool:write_file",
        "policies/approved-2.json": "is in force from now on: block:main may write tool:write_file "
        "(only: calls like the one that was approved; conversation conv_1)",
        "policies/bob.json": "is about 'bob', who is not known here: it has no effect",
    }
    assert {f"policies/{id}.json" for id in (*subjects, "deny")} <= {*server.files()}


async def test_fs_1_policies_that_were_in_force_are_not_reported(laptop: Place, server: Place) -> None:
    """An archive that is imported again names none of its policies, also with other news. One that changed is named."""
    policy = {"subject": "block:garden", "resource": "tool:write_file", "action": "write", "effect": "allow"}
    for id in ("one", "two"):
        await laptop.write(f"policies/{id}.json", json.dumps(policy))
    archive = await laptop.export()
    assert len(policies_in(await server.bring(archive))) == 2
    assert policies_in(await server.bring(archive)) == []
    await laptop.write("news.md", "text")
    assert policies_in(await server.bring(await laptop.export("news.tar"))) == []
    await laptop.write("policies/two.json", json.dumps(policy | {"action": "*"}))
    assert policies_in(await server.bring(await laptop.export("two.tar"))) == ["policies/two.json"]


def policies_in(done: MemoryImport) -> list[str]:
    """The policies that the report of an import names."""
    return [gap.what for gap in done.gaps if gap.what.startswith("policies/")]


async def test_concurrent_writes_during_an_import_are_kept(laptop: Place, server: Place) -> None:
    """An import of many files loses no write that happens beside it."""
    import anyio

    for number in range(30):
        await laptop.write(f"many/{number}.md", f"text {number}")
    archive = await laptop.export()
    async with anyio.create_task_group() as group:
        group.start_soon(server.bring, archive)
        for number in range(20):
            group.start_soon(server.write, f"mine/{number}.md", str(number))
    files = server.files()
    assert sum(path.startswith("mine/") for path in files) == 20
    assert sum(path.startswith("many/") for path in files) == 30


DYING = """
import os, shutil, sys, anyio
from pathlib import Path
from trunkline_git_store.store import GitMemoryStore
from trunkline.contracts.memory.store import StoreContext
from trunkline.contracts.memory.transfer import ImportMemory

def told(progress):
    if progress.stage == sys.argv[3]:
        os.kill(os.getpid(), 9)

async def main():
    base = Path(sys.argv[1])
    store = GitMemoryStore()
    await store.open(StoreContext(base / "memory", base / "cache"))
    request = ImportMemory(object="x", actor="owner", settings=True)
    shutil.copyfile(sys.argv[2], base / "cache/import-x.tar")
    await store.import_archive(base / "cache/import-x.tar", request, told)

anyio.run(main)
"""


@pytest.mark.kill
async def test_a_killed_import_is_completed_by_the_next_one(
    laptop: Place, opened: Opened, git: Git, tmp_path: Path
) -> None:
    """Wherever it dies: memory is sound, nothing is left lying about, and the same import does the rest."""
    import anyio

    for number in range(600):  # so that there is something to check and to pack
        await laptop.write(f"many/{number % 40}.md", f"text {number}")
    archive = await laptop.export()
    base = tmp_path / "dying"
    (base / "cache").mkdir(parents=True)
    for stage in ("unpacking", "checking", "packing", "writing"):
        done = await anyio.run_process([sys.executable, "-c", DYING, base, archive, stage], check=False)
        assert done.returncode == -9, done.stderr
        async with opened(base) as store:
            assert (await store.read("AGENT.md")).content
            assert git("fsck", "--full", "--strict", "--no-dangling", at=base / "memory") == ""
        assert leavings(base / "cache") == [], stage
    async with opened(base) as store:
        place = Place(store, base)
        await place.bring(archive)
        assert {path for path in place.files() if path.startswith("many/")} == {
            path for path in laptop.files() if path.startswith("many/")
        }
        assert (await place.bring(archive)).idle


def leavings(cache: Path) -> list[str]:
    return [path.name for path in cache.iterdir() if "import" in path.name or "export" in path.name]
