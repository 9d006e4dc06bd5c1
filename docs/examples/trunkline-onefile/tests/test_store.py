"""A memory over a list of records: the additions of the base class to the contract suite, which ``OneFile`` runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from trunkline import Message, StorageError
from trunkline.api.bus import Refusal
from trunkline.api.memory import AppendConversation
from trunkline.api.store import Change, RevertMemory, StoreContext
from trunkline_onefile.records import MemoryRecord
from trunkline_onefile.store import RecordStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Kept(RecordStore):
    """Keeps records in a list; ``full`` is a disk without room."""

    def __init__(self, records: list[MemoryRecord]) -> None:
        super().__init__()
        self.records = records
        self.full = False

    def load(self, root: Path) -> Iterable[MemoryRecord]:
        return list(self.records)

    def keep(self, record: MemoryRecord) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        self.records.append(MemoryRecord.decode(record.encode()))


async def opened(records: list[MemoryRecord], base: Path, **context: Any) -> Kept:
    store = Kept(records)
    await store.open(StoreContext(base, base, **context))
    return store


def write(store: RecordStore, path: str, text: str):
    return store.change(Change({path: text.encode()}, actor="ada", reason=""))


async def test_a_change_that_cannot_be_stored_has_no_effect(tmp_path: Path) -> None:
    """The caller is refused with the reason, no reader sees the change, and the store continues when there is room."""
    told: list[object] = []
    store = await opened([], tmp_path, on_change=told.append)
    told.clear()  # the first files
    store.full = True
    with pytest.raises(Refusal, match="no space left on device"):
        await write(store, "a.md", "one")
    with pytest.raises(Refusal):
        await store.read("a.md")
    assert told == []
    store.full = False
    await write(store, "a.md", "two")
    assert (await store.read("a.md")).content == "two" and len(told) == 1


async def test_appending_to_a_conversation_stores_only_the_addition(tmp_path: Path) -> None:
    """Only the first record of a conversation is whole; the others hold the appended messages, and replay to the
    same."""
    records: list[MemoryRecord] = []
    store = await opened(records, tmp_path)
    for number in range(5):
        message = Message(id=f"msg_{number}", role="user", content=f"text {number} " + "x" * 1000)
        appended = AppendConversation(block="main", conversation="conv_a", messages=(message,), actor="ada")
        assert await store.append_conversation(appended) == number + 1
    assert [len(record.encode()) < 3000 for record in records[-4:]] == [True] * 4
    assert all(record.grown and not record.files for record in records[-4:])
    again = await opened(records, tmp_path)
    found = await again.load_conversation("main", "conv_a", after=0)
    assert [message.id for message in found.messages] == [f"msg_{number}" for number in range(5)]
    before = (await again.history("blocks/main/conversations/a/conv_a.jsonl", limit=9))[0].previous or ""
    assert before.count("\n") == 5, "the header and four messages"


async def test_a_change_of_nothing_is_no_record(tmp_path: Path) -> None:
    """Writing the existing text keeps the version."""
    records: list[MemoryRecord] = []
    store = await opened(records, tmp_path)
    version = await write(store, "a.md", "one")
    assert await write(store, "a.md", "one") == version
    assert records[-1].version == version


async def test_a_rule_changes_stored_text_and_a_failing_rule_refuses(tmp_path: Path) -> None:
    """The stored text is the result of the rules."""

    def redact(change: Change) -> Change:
        if "boom.md" in change.files:
            raise RuntimeError("the rule is broken")
        change.files = dict.fromkeys(change.files, b"[redacted]")
        return change

    store = await opened([], tmp_path, rules=(redact,))
    await write(store, "a.md", "secret")
    assert (await store.read("a.md")).content == "[redacted]"
    with pytest.raises(Refusal, match="a rule of the memory failed"):
        await write(store, "boom.md", "x")


async def test_a_log_that_cannot_be_loaded_stops_the_start(tmp_path: Path) -> None:
    """For any exception of the subclass, the error is one sentence, and no initial files overwrite the log."""

    class Broken(Kept):
        def load(self, root: Path) -> Iterable[MemoryRecord]:
            raise ConnectionError("the database does not answer")

    store = Broken([])
    with pytest.raises(StorageError, match="the database does not answer"):
        await store.open(StoreContext(tmp_path, tmp_path))
    assert store.records == []


async def test_a_log_returns_previous_versions(tmp_path: Path) -> None:
    """Blame, difference, one step back and back to a version, all from the records."""
    store = await opened([], tmp_path)
    first = await write(store, "box/a.md", "one\ntwo\n")
    second = await write(store, "box/a.md", "one\n2\n")
    spans = (await store.blame("box/a.md")).spans
    assert [(span.first, span.lines, span.version) for span in spans] == [
        (1, ("one",), first),
        (2, ("2",), second),
    ]
    assert "-two\n+2\n" in (await store.diff("box")).text
    assert (await store.diff("box", first, first)).files == ()
    assert (await store.revert(RevertMemory(path="box/a.md", actor="ada"))).undone == second
    assert (await store.read("box/a.md")).content == "one\ntwo\n"
    await store.delete("box", actor="ada", reason="")
    await store.revert(RevertMemory(path="box", to=second, actor="ada"))
    assert (await store.read("box/a.md")).content == "one\n2\n"
    stale = (await store.read("box/a.md")).hash
    await write(store, "box/a.md", "three")
    with pytest.raises(Refusal, match="changed since"):
        await store.edit("box/a.md", "three", "four", actor="ada", reason="", expected=stale)
    with pytest.raises(Refusal, match="changed again after that"):
        await store.revert(RevertMemory(path="box/a.md", version=second, actor="ada"))
    for refused in (
        store.blame("none.md"),
        store.diff("box", "feed"),
        store.revert(RevertMemory(path="x", actor="a")),
    ):
        with pytest.raises(Refusal):
            await refused
