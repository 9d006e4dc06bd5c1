"""A purge follows a text: under every name it had, into copies, and into files derived from a conversation."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from trunkline.contracts.conversations.messages import AppendConversation, Message
from trunkline.contracts.memory.purge import MemoryPurged
from trunkline.contracts.memory.purger import Purge, Purger
from trunkline.contracts.memory.store import Change
from trunkline_bus import Refusal, Scope
from trunkline_git_store.store import GitMemoryStore

from .chunks.conftest import Chunks, chunks_in
from .test_purge import everything, purge

pytestmark = pytest.mark.anyio

Git = Callable[..., str]
Write = Callable[..., Awaitable[str]]

SECRET = "The combination of the safe is zebra seven four"
LETTER = f"Dear Anna,\n\n{SECRET}.\nPlease keep this letter to yourself.\nYours sincerely, Bob Miller\n"


@pytest.fixture
async def chunks(store: GitMemoryStore) -> Chunks:
    return await chunks_in(store)


@pytest.fixture
def bytes_of(root: Path) -> Callable[[], bytes]:
    """All that lies around memory, as bytes."""

    def read() -> bytes:
        return b"".join(file.read_bytes() for file in root.parent.rglob("*") if file.is_file())

    return read


def files(root: Path, name: str) -> list[Path]:
    """The files of a name."""
    return list(root.rglob(name))


def reported(done: MemoryPurged) -> dict[str, str]:
    """Return each place that keeps the text, with its description."""
    return {kept.where: kept.what for kept in done.kept}


async def test_a_renamed_file_is_purged_under_every_name(
    chunks: Chunks, write: Write, git: Git, bytes_of: Callable[[], bytes]
) -> None:
    """Twice moved, changed beyond recognition before and after: the names it had go with all their versions."""
    await write("first.md", "An old draft without anything in common, zebra zero")
    await write("first.md", LETTER)
    await chunks.store.move("first.md", "second.md", actor="agent", reason="")
    await write("second.md", LETTER + "One more line of the letter, at its end.\n")
    await chunks.store.move("second.md", "letters/third.md", actor="agent", reason="")
    await write("letters/third.md", "All of it was written anew since, zebra nine.\n")
    await write("other.md", "giraffe")
    done = await purge(chunks, "letters/third.md")
    assert done.paths == ("first.md", "letters/third.md", "second.md")
    assert "zebra" not in everything(git) and b"zebra" not in bytes_of()
    assert "giraffe" in everything(git)
    git("fsck", "--strict", "--no-dangling")


async def test_a_file_moved_by_hand_is_followed(
    chunks: Chunks, write: Write, git: Git, root: Path, bytes_of: Callable[[], bytes]
) -> None:
    """With git and with a file manager, in one commit and in two, and changed a little on the way."""
    await write("first.md", LETTER)
    await write("other.md", "giraffe")
    git("reset", "-q")
    git("rm", "-q", "first.md")
    git("commit", "-qm", "away")
    (root / "second.md").write_text(LETTER.replace("Dear Anna", "Dear Anna and Carla"))
    git("add", "second.md")
    git("commit", "-qm", "and here again")
    git("mv", "second.md", "third.md")
    git("commit", "-qm", "moved")
    done = await purge(chunks, "third.md")
    assert {"first.md", "second.md", "third.md"} <= set(done.paths)
    assert "zebra" not in everything(git) and b"zebra" not in bytes_of()


async def test_a_split_file_is_purged_and_its_other_part_reported(
    chunks: Chunks, write: Write, git: Git
) -> None:
    """No file is deleted whose name the owner did not confirm, and the report says where the text remains."""
    other = "The bicycle stands behind the house.\nIts colour is a greenish blue, they say.\n"
    await write("whole.md", LETTER + other)
    await chunks.store.change(
        Change(
            {"whole.md": None, "letter.md": LETTER.encode(), "bicycle.md": other.encode()},
            actor="agent",
            reason="",
        )
    )
    await write("bicycle.md", other + f"By the way: {SECRET}!\n")
    await write("bicycle.md", other)
    done = await purge(chunks, "letter.md")
    assert done.paths == ("letter.md", "whole.md")
    assert (await chunks.store.read("bicycle.md")).content == other
    assert "now or in its history" in reported(done)["bicycle.md"]


async def test_old_copies_are_purged_and_current_copies_reported(
    chunks: Chunks, write: Write, git: Git
) -> None:
    """There is a deleted copy, a changed one, a current one, and a note that quotes one line."""
    await write("letter.md", LETTER)
    await write("deleted.md", LETTER)
    await chunks.store.delete("deleted.md", actor="agent", reason="")
    await write("changed.md", LETTER.replace("Bob Miller", "Robert"))
    await chunks.store.delete("changed.md", actor="agent", reason="")
    await write("living.md", LETTER)
    await write("quote.md", f"He wrote: {SECRET}. What can he mean by that? I do not know, and nobody does.")
    done = await purge(chunks, "letter.md")
    assert done.paths == ("changed.md", "deleted.md", "letter.md")
    assert set(reported(done)) >= {"living.md", "quote.md"} and "Purge it" in reported(done)["living.md"]
    for path in ("living.md", "quote.md"):
        await purge(chunks, path)
    assert "zebra" not in everything(git)


async def test_purging_a_reused_name_keeps_the_new_file(chunks: Chunks, write: Write, git: Git) -> None:
    """The old file of that name goes, the new one stays with its history; and an archive of before stays refused."""
    await write("notes.md", LETTER)
    await chunks.store.move("notes.md", "letter.md", actor="agent", reason="")
    await write("notes.md", "The giraffe is tall.")
    await write("notes.md", "The giraffe is very tall.")
    done = await purge(chunks, "letter.md")
    assert (done.paths, done.changed) == (("letter.md",), ("notes.md",))
    assert "zebra" not in everything(git)
    history = await chunks.store.history("notes.md", limit=9)
    assert [change.previous for change in history] == ["The giraffe is tall.", None]
    note = json.loads((await chunks.store.read("audit/purges.jsonl")).content)
    assert [path for path, _ in note["versions"]] == ["notes.md"]


async def test_an_old_name_purges_no_file_of_another_name(chunks: Chunks, write: Write) -> None:
    """The error for an old name gives the new one, whose file is kept."""
    await write("old.md", LETTER)
    await chunks.store.move("old.md", "new.md", actor="agent", reason="")
    done = await purge(chunks, "old.md")
    assert done.paths == ("old.md",)
    assert (await chunks.store.read("new.md")).content == LETTER
    assert "Purge it as well" in reported(done)["new.md"]


# Conversations ------------------------------------------------------------------------------------------------


async def said(store: GitMemoryStore, conversation: str, text: str, block: str = "main") -> None:
    """One message of a turn."""
    turn = f"turn_{conversation}"
    message = Message(id=f"msg_{conversation}", role="user", content=text, turn=turn)
    await store.append_conversation(
        AppendConversation(
            block=block, conversation=conversation, messages=(message,), actor="owner", turn=turn
        )
    )


def entry(conversation: str, text: str) -> str:
    """A line of the audit log."""
    return json.dumps(
        {
            "type": "audit.entry.v1", "id": f"audit_{conversation}", "at": "2026-05-04T12:00:00Z", "event": "call",
            "block": "main", "actor": "owner", "conversation": conversation, "tool": "write_file", "status": "ok",
            "why": f"asked for {text}", "arguments": {"path": "a.md", "content": text}, "output": text,
        }
    )  # fmt: skip


class Sources(Purger):
    """Notes with several sources."""

    name = "sources"

    def without(self, path: str, data: bytes, purge: Purge) -> bytes | None:
        if not path.startswith("learned/"):
            return data
        held = json.loads(data)
        left = [one for one in held["sources"] if one not in purge.conversations]
        return json.dumps({**held, "sources": left}).encode() if left else None


async def test_a_purged_conversation_takes_its_derived_files_along(
    chunks: Chunks, write: Write, git: Git, root: Path, bytes_of: Callable[[], bytes]
) -> None:
    """Its file, in an archived block too, chunks, learned notes, audit lines and the words of commits."""
    await said(chunks.store, "conv_zebra", f"Please note: {SECRET}")
    await said(chunks.store, "conv_other", "How tall is a giraffe, my friend?")
    gone = await chunks.keep(SECRET, conversation="conv_zebra")
    kept = await chunks.keep("The giraffe is tall", conversation="conv_other")
    lines = [entry("conv_zebra", SECRET), entry("conv_other", "a giraffe is tall")]
    await write("audit/2026-05-04.jsonl", lines[0] + "\n")
    await write("audit/2026-05-04.jsonl", "".join(f"{line}\n" for line in lines))
    await write("learned/alone.json", json.dumps({"text": SECRET, "sources": ["conv_zebra"]}))
    await write("learned/both.json", json.dumps({"text": "tall", "sources": ["conv_zebra", "conv_other"]}))
    scope = Scope(block="main", conversation="conv_zebra", turn="turn_conv_zebra")
    await chunks.store.change(
        Change(
            {"documents/report.md": b"What the agent made of it"}, actor="agent", reason="zebra!", scope=scope
        )
    )
    await chunks.store.move("blocks/main", "archive/main_1", actor="owner", reason="")
    done = await purge(chunks, "conv_zebra", purgers=(Sources(),))
    assert done.conversations == ("conv_zebra",)
    assert "zebra seven" not in everything(git) and b"zebra seven" not in bytes_of()
    assert "zebra!" not in everything(git) and "[purged]" in git("log", "--format=%B")
    assert {path.rpartition("/")[2] for path in done.paths} == {
        "conv_zebra.jsonl",
        f"{gone}.json",
        "alone.json",
    }
    assert json.loads((await chunks.store.read("learned/both.json")).content)["sources"] == ["conv_other"]
    assert not files(root, f"{gone}.json") and files(root, f"{kept}.json") and files(root, "conv_other.jsonl")
    first, second = map(json.loads, (await chunks.store.read("audit/2026-05-04.jsonl")).content.splitlines())
    assert (first["tool"], first["status"], first["conversation"]) == ("write_file", "ok", "conv_zebra")
    assert set(first["arguments"].values()) == {first["why"], first["output"]} == {"[purged]"}
    assert second == json.loads(lines[1])
    assert "written in the conversation" in reported(done)["documents/report.md"]
    git("fsck", "--strict", "--no-dangling")


async def test_the_path_of_a_conversation_selects_the_conversation(
    chunks: Chunks, git: Git, root: Path
) -> None:
    """Its file's path means the same as its id, and so does a folder that holds it."""
    await said(chunks.store, "conv_zebra", SECRET)
    await chunks.keep(SECRET, conversation="conv_zebra")
    (file,) = files(root, "conv_zebra.jsonl")
    done = await purge(chunks, str(file.relative_to(root)))
    assert done.conversations == ("conv_zebra",)
    assert "zebra seven" not in everything(git)


async def test_another_conversation_with_the_purged_text_is_reported(chunks: Chunks) -> None:
    """A fork, or the same said again: it stays, by name."""
    await said(chunks.store, "conv_zebra", SECRET)
    await said(chunks.store, "conv_fork", f"I said it before: {SECRET}")
    done = await purge(chunks, "conv_zebra")
    (where,) = [where for where in reported(done) if "conv_fork" in where]
    assert where == "conversation conv_fork" and "Purge it as well" in reported(done)[where]


@pytest.mark.parametrize(
    ("given", "goes"),
    [
        ("letters/Letter.md", True),
        ("/LETTERS/letter.MD", True),
        ("blocks\\\\main\\\\letters\\\\Letter.md", True),
        ("cat 'letters/Letter.md', then rest", True),
        ("memory:letters/./Letter.md.", True),
        ("file:///home/ana/.trunkline/memory/blocks/main/letters/Letter%2Emd", True),
        ("letters/Letter.md.bak", False),
        ("other/letters/Letter.md", False),
        ("myletters/Letter.md", False),
        ("letters/Letter", False),
    ],
)
async def test_an_audit_line_that_names_the_file_loses_its_content(
    chunks: Chunks, write: Write, given: str, goes: bool
) -> None:
    """This holds for any spelling: in other letters, quoted, in an address. A file with a similar name keeps its
    content."""
    await write("blocks/main/letters/Letter.md", LETTER)
    line = {
        "type": "audit.entry.v1", "id": "audit_1", "at": "2026-05-04T12:00:00Z", "event": "call", "block": "main",
        "actor": "agent", "tool": "read", "status": "ok", "arguments": {"path": given}, "output": "zebra",
    }  # fmt: skip
    await write("audit/2026-05-04.jsonl", json.dumps(line) + "\n")
    await purge(chunks, "blocks/main/letters/Letter.md")
    left = json.loads((await chunks.store.read("audit/2026-05-04.jsonl")).content)
    assert (left["arguments"]["path"], left["output"]) == (("[purged]",) * 2 if goes else (given, "zebra"))


@pytest.mark.parametrize("damage", ["{", '{"target": 7}', "\ufffd"])
async def test_an_unreadable_purge_log_refuses_imports(chunks: Chunks, write: Write, damage: str) -> None:
    """The purged turns are unknown then, so the changes of every turn are refused, with the line, until the file is
    repaired. Conversations are stored, and people can write."""
    from trunkline.workers.memory.change_rules import PurgedTurnRule
    from trunkline.workers.memory.purge.service import PurgeService

    await write("letter.md", LETTER)
    await purge(chunks, "letter.md")
    notes = (await chunks.store.read("audit/purges.jsonl")).content
    await write("audit/purges.jsonl", f"{notes}{damage}\n")
    late = PurgedTurnRule()
    chunks.store._components.committer.rules = (late,)
    await PurgeService(chunks.store, (), None, late).load()
    scope = Scope(block="main", conversation="conv_a", turn="turn_a")
    change = Change({"learned.md": b"zebra"}, actor="learner", reason="", scope=scope)
    with pytest.raises(Refusal, match=r"audit/purges\.jsonl:2 cannot be read"):
        await chunks.store.change(change)
    await said(chunks.store, "conv_b", "hello")
    await write("audit/purges.jsonl", notes)
    late = PurgedTurnRule()
    chunks.store._components.committer.rules = (late,)
    await PurgeService(chunks.store, (), None, late).load()
    await chunks.store.change(change)


async def test_a_write_after_the_purge_began_is_refused(chunks: Chunks) -> None:
    """A learner that was waiting for a model cannot restore the text, but the conversation may start again."""
    from trunkline.contracts.memory.purge import PurgeMemory
    from trunkline.workers.memory.change_rules import PurgedTurnRule
    from trunkline.workers.memory.purge.service import PurgeService

    late = PurgedTurnRule()
    chunks.store._components.committer.rules = (late,)
    await said(chunks.store, "conv_zebra", SECRET)
    await PurgeService(chunks.store, (), None, late).purge(
        PurgeMemory(target="conv_zebra", confirm="conv_zebra", actor="owner"), Scope()
    )
    scope = Scope(block="main", conversation="conv_zebra", turn="turn_conv_zebra")
    with pytest.raises(Refusal) as refused:
        await chunks.store.change(Change({"learned.md": b"zebra"}, actor="learner", reason="", scope=scope))
    assert refused.value.code == "purged"
    again = PurgedTurnRule()
    await PurgeService(chunks.store, (), None, again).load()
    chunks.store._components.committer.rules = (again,)
    with pytest.raises(Refusal):
        await chunks.store.change(Change({"learned.md": b"zebra"}, actor="learner", reason="", scope=scope))
    await said(chunks.store, "conv_zebra", "Hello again")
