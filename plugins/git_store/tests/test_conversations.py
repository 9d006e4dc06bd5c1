"""Conversations: appended once and in order, listed and found, as files that a person can read."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ListConversations,
    Message,
    Role,
    ToolCall,
)
from trunkline_bus import Refusal
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Git = Callable[..., str]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def said(number: int, role: Role = "user", text: str | None = None) -> Message:
    """A message; ``number`` makes its id and its minute."""
    content = f"text {number}" if text is None else text
    return Message(id=f"m{number}", role=role, content=content, created_at=BEGAN + timedelta(minutes=number))


def append(
    *messages: Message, block: str = "main", conversation: str = "c1", title: str | None = None
) -> AppendConversation:
    """A request of the gateway."""
    return AppendConversation(
        block=block, conversation=conversation, messages=messages, actor="gateway", turn="turn_1", title=title
    )


async def ids(store: GitMemoryStore, after: int = 0, conversation: str = "c1") -> list[str]:
    """The stored ids."""
    found = await store.load_conversation("main", conversation, after=after)
    return [message.id for message in found.messages]


async def test_messages_are_read_back_complete_and_in_order(store: GitMemoryStore) -> None:
    """All fields of all roles survive, also line ends and control characters in content."""
    call = ToolCall(id="call1", name="roll", arguments={"sides": 6, "note": "ü\n"})
    messages = (
        said(1, text="one\r\ntwo\n\0"),
        Message(
            id="m2", role="assistant", content="Let me see.", tool_calls=(call,), turn="turn_1", partial=True
        ),
        Message(id="m3", role="tool", content="4", tool_call_id="call1", name="roll", error=True),
        Message(id="m4", role="assistant", content="", metadata={"a": [1, None]}),
    )
    assert await store.append_conversation(append(*messages)) == 4
    found = await store.load_conversation("main", "c1", after=0)
    assert found.messages == messages
    assert (found.exists, found.count) == (True, 4)


async def test_appending_again_changes_nothing(store: GitMemoryStore, git: Git) -> None:
    """Messages are known by their id, within one request, across requests, and after a restart."""
    await store.append_conversation(append(said(1), said(1), said(2)))
    commits = git("rev-list", "--count", "HEAD")
    assert await store.append_conversation(append(said(2), said(1))) == 2
    assert git("rev-list", "--count", "HEAD") == commits
    assert await store.append_conversation(append(said(2), said(3))) == 3
    assert await ids(store) == ["m1", "m2", "m3"]


async def test_appending_again_after_a_restart_changes_nothing(opened: Opened) -> None:
    """Known messages are read from the file, not only from the cache."""
    async with opened() as store:
        await store.append_conversation(append(said(1), said(2)))
    async with opened() as store:
        assert await store.append_conversation(append(said(1), said(2), said(3))) == 3
        assert await ids(store) == ["m1", "m2", "m3"]


async def test_a_slice_begins_at_the_requested_message(store: GitMemoryStore) -> None:
    """``after`` counts messages; an unknown conversation does not exist."""
    await store.append_conversation(append(*(said(number) for number in range(10))))
    assert await ids(store, after=7) == ["m7", "m8", "m9"]
    assert await ids(store, after=99) == []
    assert not (await store.load_conversation("main", "unknown", after=0)).exists


async def test_many_appends_at_once_keep_each_message_once(store: GitMemoryStore) -> None:
    """Simultaneous appends to one conversation, repeats among them, leave each message once."""
    async with anyio.create_task_group() as group:
        for number in range(60):
            group.start_soon(store.append_conversation, append(said(number % 40)))
    assert sorted(await ids(store)) == sorted(f"m{number}" for number in range(40))


async def test_the_file_is_json_lines(store: GitMemoryStore, root: Path, git: Git) -> None:
    """ARCH-1: a header line, then a message a line; the commit names conversation and turn."""
    await store.append_conversation(append(said(1), said(2, "assistant")))
    text = (root / "blocks/main/conversations/1/c1.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0] == {"id": "c1", "block": "main", "title": "Text 1", "created_at": "2026-01-01T00:01:00Z"}
    assert [line["content"] for line in lines[1:]] == ["text 1", "text 2"]
    message = git("log", "-1", "--format=%B")
    assert "Conversation: c1\nTurn: turn_1" in message


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  Hello\n there ", "Hello there"),
        ("x" * 200, "X" + "x" * 58 + "…"),
        ("", None),
        ("Hello, could you please water the beans? And then rest.", "Could you please water the beans?"),
        ("# Plan for *spring*\n\nWe dig.", "Plan for spring"),
        ("```python\nx = 1\n```\n\nWhat is wrong here?", "What is wrong here?"),
        ("```python\nx = 1\n```", "X = 1"),
        ("what can you do?", "What can you do?"),
        ("Can you help me?", "Can you help me?"),
        ("How do I tell me apart from my twin?", "How do I tell me apart from my twin?"),
        ("Was kannst du?", "Was kannst du?"),
        ("Please write a poem. It rhymes.", "Write a poem"),
        ("Please", "Please"),
        ("ok. now do it", "Ok. now do it"),
        ("https://example.com/a?b=c what is this", "https://example.com/a?b=c what is this"),
        ("/tool list_blocks", "/tool list_blocks"),
        ("- [ ] buy beans", "Buy beans"),
        (
            "Could you explain how the whole gateway of this platform decides who may enter it?",
            "Explain how the whole gateway of this platform decides who…",
        ),
        ("👍", "👍"),
        (
            "where does the climbing frame for the runner beans stand in winter",
            "Where does the climbing frame for the runner beans stand…",
        ),
    ],
)
async def test_titles_are_made_from_the_first_message(
    store: GitMemoryStore, text: str, title: str | None
) -> None:
    """A title is its first sentence without markup and greetings, a long one without politeness too, 60 letters at
    most; there is none before the first message."""
    await store.append_conversation(append(said(1, "system", "Be kind."), said(2, "user", text)))
    found = await store.load_conversation("main", "c1", after=0)
    assert found.summary is not None
    assert found.summary.title == title


async def test_an_owners_title_is_kept(store: GitMemoryStore) -> None:
    """A title that is given later replaces the first one, without a message, and stays."""
    await store.append_conversation(append(said(1)))
    await store.append_conversation(append(title="Mine"))
    await store.append_conversation(append(said(2)))
    summary = await store.find_conversation("c1")
    assert summary is not None
    assert (summary.title, summary.message_count) == ("Mine", 2)
    assert await ids(store) == ["m1", "m2"]


@pytest.mark.parametrize(
    ("block", "conversation"), [("../x", "c"), ("main", "../c"), ("Main", "c"), ("main", ""), ("", "c")]
)
async def test_invalid_block_names_are_refused(store: GitMemoryStore, block: str, conversation: str) -> None:
    """A block or conversation that would lead elsewhere is refused."""
    with pytest.raises(Refusal) as refused:
        await store.append_conversation(append(said(1), block=block, conversation=conversation))
    assert refused.value.code == "invalid_path"


async def test_an_unreadable_line_affects_only_itself(opened: Opened, root: Path) -> None:
    """A broken line by hand, or a missing line end, neither hides the others nor stops appending."""
    async with opened() as store:
        await store.append_conversation(append(said(1), said(2)))
    file = root / "blocks/main/conversations/1/c1.jsonl"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1], "{broken", lines[2]]))
    async with opened() as store:
        assert await store.append_conversation(append(said(3))) == 3
        assert await store.append_conversation(append(said(4))) == 4
        assert await ids(store) == ["m1", "m2", "m3", "m4"]
    assert "{broken\n" in file.read_text()


async def test_a_conversation_in_the_old_layout_continues_in_its_file(opened: Opened, root: Path) -> None:
    """A memory whose conversations lie side by side needs no migration: they are found, listed and appended to."""
    async with opened() as store:
        await store.append_conversation(append(said(1)))
    folder = root / "blocks/main/conversations"
    (folder / "1/c1.jsonl").rename(folder / "c1.jsonl")
    async with opened() as store:
        assert await ids(store) == ["m1"]
        assert await store.append_conversation(append(said(1), said(2))) == 2
        assert (await store.list_conversations(ListConversations())).total == 1
        assert await ids(store) == ["m1", "m2"]
    assert [file.name for file in folder.rglob("*.jsonl")] == ["c1.jsonl"]
    assert len((folder / "c1.jsonl").read_text().splitlines()) == 3


@pytest.fixture
async def full(store: GitMemoryStore) -> AsyncIterator[GitMemoryStore]:
    """Ten conversations in two blocks, a minute apart."""
    for number in range(10):
        text = f"number {number} about {'apples' if number % 2 else 'pears'}"
        block = "garden" if number == 9 else "main"
        answer = said(number, "assistant", f"Yes, {number}.")
        request = append(said(number, text=text), block=block, conversation=f"c{number}")
        await store.append_conversation(request)
        await store.append_conversation(append(answer, block=block, conversation=f"c{number}"))
        await store.append_conversation(
            append(Message(id=f"a{number}", role="assistant", content=f"Reply {number}", created_at=answer.created_at),
                   block=block, conversation=f"c{number}")
        )  # fmt: skip
    yield store


async def listed(store: GitMemoryStore, query: ListConversations) -> tuple[list[str], int]:
    """Ids and total of a page."""
    page = await store.list_conversations(query)
    assert (page.limit, page.offset) == (query.limit, query.offset)
    return [one.id for one in page.conversations], page.total


async def test_pages_are_newest_first_with_the_right_total(full: GitMemoryStore) -> None:
    """PA-T16: limit, offset, block, search in titles and texts, from and to, and a total that counts all matches."""
    assert await listed(full, ListConversations(limit=3)) == (["c9", "c8", "c7"], 10)
    assert await listed(full, ListConversations(limit=3, offset=8)) == (["c1", "c0"], 10)
    assert await listed(full, ListConversations(offset=99)) == ([], 10)
    assert await listed(full, ListConversations(block="garden")) == (["c9"], 1)
    assert await listed(full, ListConversations(search="apples", limit=2)) == (["c9", "c7"], 5)
    assert await listed(full, ListConversations(search="reply 4")) == (["c4"], 1)
    assert await listed(full, ListConversations(search="nothing like it")) == ([], 0)
    start, end = BEGAN + timedelta(minutes=3), BEGAN + timedelta(minutes=5)
    assert await listed(full, ListConversations(start=start, end=end)) == (["c5", "c4", "c3"], 3)
    assert await listed(full, ListConversations(start=start, search="pears", block="main")) == (
        ["c8", "c6", "c4"],
        3,
    )


async def test_the_list_is_right_after_the_index_was_deleted(full: GitMemoryStore, tmp_path: Path) -> None:
    """The list is derived: without its cache it is made again from the files."""
    before = await full.list_conversations(ListConversations(limit=50))
    for file in (tmp_path / "cache").iterdir():
        file.unlink()
    assert await full.list_conversations(ListConversations(limit=50)) == before


async def test_a_conversation_is_found_by_its_id(full: GitMemoryStore) -> None:
    """The result has its block, title, times and count; None for an unknown one, and for one of an archived block."""
    found = await full.find_conversation("c9")
    assert found is not None
    assert (found.block, found.message_count, found.created_at) == ("garden", 2, BEGAN + timedelta(minutes=9))
    assert await full.find_conversation("unknown") is None
    await full.move("blocks/garden", "archive/garden_2026", actor="gateway", reason="")
    assert await full.find_conversation("c9") is None
    await full.move("archive/garden_2026", "blocks/garden", actor="gateway", reason="")
    assert await full.find_conversation("c9") == found
