"""The contract of a memory store, as a test suite for any store.

::

    from trunkline.api.testing import StoreSuite

    class TestMine(StoreSuite):
        def store(self):
            return MyStore()

Every test opens the store on a new root. The suite asserts what the memory worker and PA-F8 to PA-F11 rely on.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ForkedFrom,
    ListConversations,
    Message,
    utc_now,
)
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.memory.files import MemoryChanged
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.store import Change, MemoryStore, StoreContext
from trunkline.testing.contract_suite import ContractSuite
from trunkline_bus import Refusal

OUTSIDE = ("../out.md", "/etc/passwd", "a/../../out.md", "nul\0.md", "x" * 5000, ".git/config")
"""Paths outside the root, which every store must refuse."""


class StoreSuite(ContractSuite, ABC):
    """Inherit from this class and implement ``store``; pytest runs the tests."""

    @abstractmethod
    def store(self) -> MemoryStore:
        """Return a store that is not open yet."""

    @asynccontextmanager
    async def opened(self, base: Path) -> AsyncIterator[MemoryStore]:
        """Open the store on the root below ``base``. Opening the root again finds the same content."""
        store = self.store()
        await store.open(StoreContext(base / "memory", base / "cache"))
        try:
            yield store
        finally:
            await store.aclose()

    @pytest.mark.anyio
    @pytest.mark.parametrize("text", ["", "plain", "Grüße\r\n\ttabs", "x" * 1_100_000], ids=len)
    async def test_written_text_is_read_back_unchanged(self, text: str, tmp_path: Path) -> None:
        """Any text is returned unchanged, also after the store was closed and opened again."""
        async with self.opened(tmp_path) as store:
            await _write(store, "notes/ä.md", text)
            assert (await store.read("notes/ä.md")).content == text
        async with self.opened(tmp_path) as again:
            assert (await again.read("notes/ä.md")).content == text

    @pytest.mark.anyio
    async def test_bytes_are_read_back_unchanged(self, tmp_path: Path) -> None:
        """A file that is no text, such as an image in a conversation, is read back byte for byte."""
        async with self.opened(tmp_path) as store:
            path, data = "blocks/main/conversations/a/conv_a.files/picture.png", b"\x89PNG\r\n\x00\xff"
            await store.change(Change({path: data}, actor="suite", reason="Add a picture"))
            assert await store.read_bytes(path) == data
            with pytest.raises(Refusal) as refused:
                await store.read_bytes("blocks/main/none.png")
            assert refused.value.code == "not_found"

    @pytest.mark.anyio
    @pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: repr(path[:12]))
    async def test_no_path_leaves_the_root(self, path: str, tmp_path: Path) -> None:
        """Reading and writing outside the root are refused, and no file is created there."""
        async with self.opened(tmp_path) as store:
            for attempt in (store.read(path), _write(store, path, "x")):
                with pytest.raises(Refusal):
                    await attempt
        assert not (tmp_path / "out.md").exists()

    @pytest.mark.anyio
    async def test_history_gives_previous_states_and_old_versions(self, tmp_path: Path) -> None:
        """History is listed newest first, with the content before each change, and any version can be read (PA-F7)."""
        async with self.opened(tmp_path) as store:
            versions = [await _write(store, "a.md", text) for text in ("one", "two", "three")]
            changes = await store.history("a.md", limit=10)
            assert [change.version for change in changes] == versions[::-1]
            assert [change.previous for change in changes] == ["two", "one", None]
            assert len(await store.history("a.md", limit=1)) == 1
            assert (await store.read("a.md", versions[0])).content == "one"

    @pytest.mark.anyio
    async def test_a_stale_write_is_refused(self, tmp_path: Path) -> None:
        """A change that expects other content than the current one changes nothing."""
        async with self.opened(tmp_path) as store:
            await _write(store, "a.md", "one")
            known = (await store.read("a.md")).hash
            await _write(store, "a.md", "two")
            change = Change({"a.md": b"three"}, actor="a", reason="")
            with pytest.raises(Refusal) as refused:
                await store.change(change, expected={"a.md": known})
            assert refused.value.code == "write_conflict"
            assert (await store.read("a.md")).content == "two"

    @pytest.mark.anyio
    async def test_edit_move_and_delete(self, tmp_path: Path) -> None:
        """An edit replaces the first occurrence. Absent text and absent files are refused. History is kept after a
        deletion.
        """
        async with self.opened(tmp_path) as store:
            version = await _write(store, "a.md", "tea tea")
            await store.edit("a.md", "tea", "cup of", actor="a", reason="")
            assert (await store.read("a.md")).content == "cup of tea"
            with pytest.raises(Refusal):
                await store.edit("a.md", "coffee", "x", actor="a", reason="")
            await store.move("a.md", "b/c.md", actor="a", reason="")
            await store.delete("b/c.md", actor="a", reason="")
            for gone in ("a.md", "b/c.md"):
                with pytest.raises(Refusal) as refused:
                    await store.read(gone)
                assert refused.value.code == "not_found"
            assert (await store.read("a.md", version)).content == "tea tea"

    @pytest.mark.anyio
    async def test_concurrent_writers_lose_nothing(self, tmp_path: Path) -> None:
        """After two concurrent writes of one file, the file has one of the two contents and history has both.
        Concurrent writes of many files are all kept.
        """
        async with self.opened(tmp_path) as store:
            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(_write, store, f"many/{number}.md", str(number))
                    tasks.start_soon(_write, store, "one.md", f"text {number}")
            assert len(await store.list("many", recursive=False)) == 20
            assert (await store.read("one.md")).content in {f"text {number}" for number in range(20)}
            assert len(await store.history("one.md", limit=100)) == 20

    @pytest.mark.anyio
    async def test_stored_files_are_found_and_listed(self, tmp_path: Path) -> None:
        """A file is found by a word of its text and by its name, and no longer after it is deleted."""
        async with self.opened(tmp_path) as store:
            await _write(store, "notes/garden.md", "The climbing frame is green.\n")
            (hit,) = await store.search(SearchMemory(query="climbing", path="notes"))
            assert (hit.path, hit.line) == ("notes/garden.md", 1)
            assert await store.search(SearchMemory(query="garden", path="notes", kind="filename"))
            assert [entry.path for entry in await store.list("notes", recursive=True)] == ["notes/garden.md"]
            await store.delete("notes/garden.md", actor="a", reason="")
            assert await store.search(SearchMemory(query="climbing", path="")) == ()

    @pytest.mark.anyio
    async def test_deleted_files_are_not_found(self, tmp_path: Path) -> None:
        """A result that repeats memory, and the question that it was looked up for, are no evidence of anything."""
        async with self.opened(tmp_path) as store:
            await _write(store, "notes/garden.md", "The climbing frame is green.\n")
            asked = Message(id="msg_0", turn="t", role="user", content="Where is the climbing frame?")
            found = Message(
                id="msg_1", turn="t", role="tool", name="look", content="climbing frame", derived=True
            )
            said = Message(id="msg_2", turn="t", role="assistant", content="The climbing frame is outside.")
            await store.append_conversation(_append((asked, found, said)))
            hits = await store.search(SearchMemory(query="climbing frame"))
            assert {hit.content for hit in hits} == {"The climbing frame is green.", said.content}

    @pytest.mark.anyio
    async def test_a_conversation_holds_each_message_once(self, tmp_path: Path) -> None:
        """Appending is idempotent by message id, the order is kept, and a slice begins at the requested message."""
        async with self.opened(tmp_path) as store:
            messages = tuple(Message(id=f"msg_{n}", role="user", content=f"text {n}") for n in range(3))
            assert await store.append_conversation(_append(messages[:2])) == 2
            assert await store.append_conversation(_append(messages)) == 3
        async with self.opened(tmp_path) as again:
            found = await again.load_conversation("main", "conv_a", after=0)
            assert found.exists and [message.id for message in found.messages] == ["msg_0", "msg_1", "msg_2"]
            assert len((await again.load_conversation("main", "conv_a", after=2)).messages) == 1
            assert not (await again.load_conversation("main", "conv_b", after=0)).exists
            assert (await again.list_conversations(ListConversations())).total == 1
            assert await again.find_conversation("conv_a") is not None
            assert await again.find_conversation("conv_b") is None

    @pytest.mark.anyio
    async def test_a_conversation_keeps_its_summary_records(self, tmp_path: Path) -> None:
        """The last record is in effect. A record that does not follow it is not stored, so of two that were made at the
        same time there is one; withdrawing the last one returns to the one before it.
        """
        message = Message(id="m1", role="user", content="hello")
        first, second = _summary("sum_1"), _summary("sum_2", previous="sum_1")
        async with self.opened(tmp_path) as store:
            await store.append_conversation(_append((message,), summary_record=first))
            for record in (first, _summary("sum_0"), second, second):
                assert await store.append_conversation(_append((), summary_record=record)) == 1
        async with self.opened(tmp_path) as again:
            for withdrawn, left in (("sum_1", second), ("sum_2", first), ("sum_1", None), ("sum_1", None)):
                await again.append_conversation(_append((), withdrawn_record=withdrawn))
                found = await again.load_conversation("main", "conv_a", after=0)
                assert (found.summary_record, found.messages) == (left, (message,))

    @pytest.mark.anyio
    async def test_a_conversation_keeps_its_model(self, tmp_path: Path) -> None:
        """The model that was chosen stays through later messages and a restart, until it is removed."""
        message = Message(id="msg_0", role="user", content="text")
        async with self.opened(tmp_path) as store:
            chosen = AppendConversation(
                block="main", conversation="conv_a", messages=(), actor="a", model="some/model"
            )
            assert await store.append_conversation(chosen) == 0
            await store.append_conversation(_append((message,)))
        async with self.opened(tmp_path) as again:
            assert (await again.load_conversation("main", "conv_a", after=0)).model == "some/model"
            await again.append_conversation(msgspec.structs.replace(chosen, model=""))
            found = await again.load_conversation("main", "conv_a", after=0)
            assert (found.model, found.count) == (None, 1)

    @pytest.mark.anyio
    async def test_a_conversation_keeps_its_marks(self, tmp_path: Path) -> None:
        """Pins and the archive survive a restart. An archived conversation is not listed unless it is asked for, but a
        search finds it, and a new message takes it out of the archive; a repeated one does not.
        """
        message = Message(id="msg_0", role="user", content="text")
        async with self.opened(tmp_path) as store:
            await store.append_conversation(_append((message,)))
            assert await self._listed(store, archived="exclude", pinned=False) == ["conv_a"]
            assert await store.append_conversation(_append((), pinned=True, archived=True)) == 1
        async with self.opened(tmp_path) as again:
            found = await again.find_conversation("conv_a")
            assert found is not None and found.pinned and found.archived
            assert (await again.load_conversation("main", "conv_a", after=0)).summary == found
            assert (
                await self._listed(again)
                == []
                == await self._listed(again, archived="exclude", search="text")
            )
            for asked in ({"search": "text"}, {"archived": "only"}, {"archived": "include", "pinned": True}):
                assert await self._listed(again, **asked) == ["conv_a"]
            assert await self._listed(again, archived="include", pinned=False) == []
            await again.append_conversation(_append((message,)))
            assert await self._listed(again) == []
            await again.append_conversation(_append((msgspec.structs.replace(message, id="msg_1"),)))
            assert await self._listed(again, pinned=True) == ["conv_a"]
            await again.append_conversation(_append((), pinned=False))
            assert await self._listed(again, pinned=True) == []

    @pytest.mark.anyio
    async def test_a_fork_names_its_origin(self, tmp_path: Path) -> None:
        """The list has the origin and finds forks by it, also if the fork got a title before its first messages."""
        message = Message(id="msg_0", role="user", content="text")
        origin = ForkedFrom(conversation="conv_a", turn="turn_1", step=2)
        fork = msgspec.structs.replace(_append(()), conversation="conv_b", title="Named early")
        async with self.opened(tmp_path) as store:
            await store.append_conversation(_append((message,)))
            await store.append_conversation(fork)
            await store.append_conversation(
                msgspec.structs.replace(fork, title=None, messages=(message,), forked_from=origin)
            )
        async with self.opened(tmp_path) as again:
            (listed,) = (
                await again.list_conversations(ListConversations(forked_from="conv_a"))
            ).conversations
            assert listed == await again.find_conversation("conv_b")
            assert (listed.title, listed.forked_from) == ("Named early", origin)

    async def _listed(self, store: MemoryStore, **query: Any) -> list[str]:
        page = await store.list_conversations(ListConversations(**query))
        assert page.total == len(page.conversations)
        return [one.id for one in page.conversations]

    @pytest.mark.anyio
    async def test_every_change_passes_the_rules_and_is_published(self, tmp_path: Path) -> None:
        """A rule may change or refuse a write. Each commit is announced once."""
        changes: list[MemoryChanged] = []

        def rule(change: Change) -> Change:
            if "bad.md" in change.files:
                raise Refusal("write_failure", "No.")
            return change

        store = self.store()
        await store.open(
            StoreContext(tmp_path / "memory", tmp_path / "cache", rules=(rule,), on_change=changes.append)
        )
        try:
            with pytest.raises(Refusal):
                await _write(store, "bad.md", "x")
            version = await _write(store, "good.md", "x")
            assert version in {changed.version for changed in changes}
        finally:
            await store.aclose()

    @pytest.mark.anyio
    async def test_the_archive_holds_everything(self, tmp_path: Path) -> None:
        """An archive contains at least all current files (ARCH-7)."""
        async with self.opened(tmp_path) as store:
            await _write(store, "a.md", "one")
            assert await store.export(tmp_path / "all.tar") >= 1
            assert (tmp_path / "all.tar").stat().st_size > 0


async def _write(store: MemoryStore, path: str, text: str) -> str:
    return await store.change(Change({path: text.encode()}, actor="a", reason=""))


def _append(messages: tuple[Message, ...], **more: Any) -> AppendConversation:
    return AppendConversation(block="main", conversation="conv_a", messages=messages, actor="a", **more)


def _summary(id: str, *, previous: str = "") -> SummaryRecord:
    return SummaryRecord(
        id=id,
        text="They said hello.",
        through="m1",
        count=1,
        model="m",
        created_at=utc_now(),
        turn="turn_1",
        previous=previous,
    )
