"""Finding again: words, names and signs, always up to date, and an index that can be lost at any time."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal

import pytest

from trunkline.contracts.conversations.messages import AppendConversation, ListConversations, Message
from trunkline.contracts.memory.search import MemoryHit, PassageKind, SearchMemory
from trunkline.contracts.memory.store import Change
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Write = Callable[..., Awaitable[str]]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]


async def find(
    store: GitMemoryStore,
    query: str,
    path: str = "",
    kind: Literal["content", "filename"] = "content",
    limit: int = 10,
    kinds: tuple[PassageKind, ...] = (),
    speaker: str = "",
) -> tuple[MemoryHit, ...]:
    """Search."""
    return await store.search(
        SearchMemory(query=query, path=path, kind=kind, limit=limit, kinds=kinds, speaker=speaker)
    )


async def paths(store: GitMemoryStore, query: str, path: str = "") -> list[str]:
    """The paths found, best first."""
    return [hit.path for hit in await find(store, query, path)]


async def test_a_hit_names_its_path_and_line(store: GitMemoryStore, write: Write) -> None:
    """PA-F9: path, the line counted from 1, its text, and the lines around."""
    await write("a.md", "# Garden\n\nold fence\nThe climbing frame is green.\nnew fence\n")
    (hit,) = await find(store, "climbing")
    assert (hit.path, hit.line, hit.content) == ("a.md", 4, "The climbing frame is green.")
    assert hit.context == "\nold fence\nThe climbing frame is green.\nnew fence\n"
    assert hit.score > 0


async def test_more_words_found_is_better(store: GitMemoryStore, write: Write) -> None:
    """Files with all words come before those with some; accents and case do not matter; endings may follow."""
    await write("one.md", "A green thing.")
    await write("both.md", "The green frames of Müller.")
    assert await paths(store, "GREEN frame") == ["both.md", "one.md"]
    assert await paths(store, "muller") == ["both.md"]


async def test_a_document_outranks_conversations_about_it(store: GitMemoryStore, write: Write) -> None:
    """A conversation repeats the question again and again; a person searches for the document that has the answer."""
    await write(
        "documents/garden.md", "The climbing frame for the beans stands behind the shed, and it is green."
    )
    said = tuple(Message(id=f"msg_{n}", role="user", content="climbing frame") for n in range(5))
    await store.append_conversation(
        AppendConversation(block="main", conversation="conv_a", messages=said, actor="owner")
    )
    assert (await paths(store, "climbing frame"))[0] == "documents/garden.md"


EPISODE = """{
  "created_at": "2026-05-04T12:00:00Z",
  "judged_by": "",
  "outcome": "It is green.\\nNobody \\"climbs\\" it.",
  "source": {
    "turn": "turn_1"
  },
  "task": "What colour is the climbing frame?",
  "tools": [
    "memory_search"
  ]
}
"""


async def test_json_is_found_and_shown_as_it_reads(store: GitMemoryStore, write: Write) -> None:
    """Keys and values without signs, in the line where they stand; words behind an escape are words."""
    await write("models/m/episodes/2026-05-04/ep-1.json", EPISODE)
    (hit,) = await find(store, "climbing frame", kinds=("file",))
    assert (hit.line, hit.content) == (8, "task: What colour is the climbing frame?")
    assert not set(hit.context) & set('{}[]"')
    (other,) = await find(store, "nobody", kinds=("file",))
    assert (other.line, other.content) == (4, 'outcome: It is green. Nobody "climbs" it.')
    (named,) = await find(store, "memory_search", path="models", kinds=("file",))
    assert (named.line, named.content) == (10, "memory_search")
    await write("settings.json", '{\n  "port": 8080,\n  "open": true\n}\n')
    assert [hit.content for hit in await find(store, "8080")] == ["port: 8080"]
    await write("short.json", '{"zebra": "striped"}')
    assert [hit.content for hit in await find(store, "zebra")] == ['{"zebra": "striped"}']
    await write("signs.json", '{\n  "mark": "-->"\n}\n')
    assert [hit.content for hit in await find(store, "-->")] == ["mark: -->"]


async def test_json_that_is_nested_without_end_hides_nothing(store: GitMemoryStore, write: Write) -> None:
    """Text that no parser accepts is shown unchanged, and every other file is found, also after a rebuild of the
    index."""
    deep = "[" * 100_000
    await write("deep.json", f'{{\n  "zebra": {deep}\n}}\n')
    await write("a.md", "A zebra.")
    said = Message(id="m1", role="tool", name="t", content=f'["zebra", {deep}')
    await store.append_conversation(
        AppendConversation(block="main", conversation="conv_a", messages=(said,), actor="owner")
    )
    for _ in range(2):
        assert len(await paths(store, "zebra")) == 3
        await store.reindex(lambda progress: None)


async def test_tool_results_are_shown_as_plain_text(store: GitMemoryStore) -> None:
    """A message that is JSON is shown without signs, in the value that was meant; text that only looks so stays."""
    answer = '{"hits":[{"path":"a.md","content":"Zebras \\"jazz\\"\\nquickly."}],"searched":"Words alone."}'
    said = tuple(
        Message(id=f"msg_{number}", role="tool", name="list_mail", content=content)
        for number, content in enumerate((answer, "{zebra lines}"))
    )
    await store.append_conversation(
        AppendConversation(block="main", conversation="conv_a", messages=said, actor="owner")
    )
    assert {hit.id: hit.content for hit in await find(store, "zebra")} == {
        "msg_0": 'content: Zebras "jazz" quickly.',
        "msg_1": "{zebra lines}",
    }


async def test_a_long_line_is_cut_around_the_match(store: GitMemoryStore, write: Write) -> None:
    """The beginning is not shown when the match is far behind."""
    await write(
        "long.md", f"It begins. {'filler words ' * 300}here is the needle, and more. {'filler ' * 300}"
    )
    (hit,) = await find(store, "needle")
    assert "here is the needle, and more." in hit.content and len(hit.content) < 520
    assert hit.content.startswith("…") and hit.content.endswith("…")


async def test_the_source_header_of_a_document_is_not_searched(store: GitMemoryStore, write: Write) -> None:
    """The front matter that is written over a converted document is not found, its title is; a person's own is."""
    front = "---\nsource: water.html\nsha256: 12ab\nreader: html\ntitle: Irrigation\n---\n\n"
    await write("documents/water.html.md", front + "# Water\n\nTen litres a day.\n")
    await write("documents/own.md", "---\nsource: grandmother\n---\n\nBoil it.\n")
    assert [(hit.line, hit.content) for hit in await find(store, "water")] == [(8, "# Water")]
    await write("documents/html.md", "A reader of novels.")
    assert await paths(store, "reader") == ["documents/html.md"]
    assert await paths(store, "irrigation") == ["documents/water.html.md"]
    assert await paths(store, "grandmother") == ["documents/own.md"]


async def test_an_episode_is_found_only_when_its_kind_is_named(store: GitMemoryStore, write: Write) -> None:
    """It retells a question and its answer, which the conversation has; signs in it are not found either."""
    await write("models/m/episodes/2026-05-04/ep-1.json", EPISODE)
    await write(
        "garden.md", "The climbing frame for the beans stands behind the shed, and its colour is green."
    )
    assert await paths(store, "colour of the climbing frame") == ["garden.md"]
    assert await paths(store, "\\n") == []  # a sign of its JSON, which no word index has
    hits = await find(store, "colour of the climbing frame", kinds=("file",))
    assert {hit.path.rpartition("/")[2] for hit in hits} == {"garden.md", "ep-1.json"}


# What is no evidence ---------------------------------------------------------------------------------------------


async def talk(store: GitMemoryStore, *said: Message, conversation: str = "conv_a") -> None:
    """Append messages to a conversation."""
    await store.append_conversation(
        AppendConversation(block="main", conversation=conversation, messages=said, actor="owner")
    )


def asked(
    question: str, *, turn: str = "t", name: str = "memory_search", derived: bool | None = None
) -> list[Message]:
    """Return a question, and a tool's answer to it."""
    return [
        Message(id=f"{turn}-asked", turn=turn, role="user", content=question),
        Message(
            id=f"{turn}-found", turn=turn, role="tool", name=name, content="zebra zebra", derived=derived
        ),
    ]


@pytest.mark.parametrize(
    ("name", "derived", "found"),
    [
        ("memory_search", None, False),  # of an earlier version, judged by its name
        ("list_mail", None, True),
        ("list_mail", True, False),
        ("memory_search", False, True),  # a client's tool of that name
    ],
)
async def test_results_that_repeat_memory_are_not_found(
    store: GitMemoryStore, name: str, derived: bool | None, found: bool
) -> None:
    """This holds for every kind that is named; a search that names kinds finds the question that started the lookup."""
    await talk(store, *asked("Where are the zebras?", name=name, derived=derived))
    for _ in range(2):
        ids = {hit.id for hit in await find(store, "zebra")}
        assert ids == ({"t-asked", "t-found"} if found else set())
        ids = {hit.id for hit in await find(store, "zebra", kinds=("turn",))}
        assert ids == ({"t-asked", "t-found"} if found else {"t-asked"})
        assert [
            one.id
            for one in (await store.list_conversations(ListConversations(search="zebra"))).conversations
        ]
        await store.reindex(lambda progress: None)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Where are the zebras?", True),
        ("Hi Ada! Where are the zebras? And the lions?\n[photo.jpg]", True),
        ("where are the zebras", True),
        ("tell me about the zebras", True),
        ("/tool memory_search query=zebra", True),
        ("斑马在哪里？", True),
        ("The zebras are in the south now. Where are the lions?", False),
        ("Remember that the zebras are in the south.", False),
        ("When I was in Kenya I saw zebras", False),
        ("zebras", False),
        ("斑马现在在南边的草原上。狮子在哪里？", False),
        ("The zebras are in the south. " * 100 + "Where?", False),
    ],
)
async def test_a_pure_question_to_memory_is_not_found_and_a_statement_is(
    store: GitMemoryStore, text: str, asks: bool
) -> None:
    """Of a turn that searched memory, a message that only asks is left out, and one with a statement is not."""
    await talk(store, *asked(text))
    query = "斑马" if "斑" in text else "zebras"
    assert [hit.id for hit in await find(store, query)] == ([] if asks else ["t-asked"])


async def test_an_index_updated_turn_by_turn_equals_a_rebuilt_one(store: GitMemoryStore) -> None:
    """The index is updated turn by turn, and rebuilt."""
    for number in range(6):
        question = f"Where are the zebras of herd {number}?"
        answer = Message(
            id=f"said-{number}", turn=f"t{number}", role="assistant", content=f"Herd {number} is south."
        )
        await talk(store, *asked(question, turn=f"t{number}"), answer)
        before = await find(store, "zebras herd south", limit=50)
        assert {hit.id for hit in before} == {f"said-{one}" for one in range(number + 1)}
    await store.reindex(lambda progress: None)
    assert await find(store, "zebras herd south", limit=50) == before


async def test_a_speaker_filter_accepts_a_name_or_a_role(store: GitMemoryStore) -> None:
    """A filter by role finds every speaker of the role, with or without a name."""
    await talk(
        store,
        Message(id="1", role="user", name="Ada", content="zebra"),
        Message(id="2", role="user", content="zebra"),
        Message(id="3", role="tool", name="list_mail", content="zebra"),
    )
    for speaker, ids in {"user": {"1", "2"}, "Tool": {"3"}, "ada": {"1"}, "list_mail": {"3"}}.items():
        assert {hit.id for hit in await find(store, "zebra", speaker=speaker)} == ids


async def test_long_files_are_found_at_the_right_place(store: GitMemoryStore, write: Write) -> None:
    """The line is right far down in a file of many passages."""
    lines = [f"line {number} of filler words" for number in range(1, 3001)]
    lines[2345] = "here is the needle"
    await write("long.md", "\n".join(lines))
    (hit,) = await find(store, "needle")
    assert (hit.line, hit.content) == (2346, "here is the needle")


async def test_search_sees_what_was_just_written(store: GitMemoryStore, write: Write) -> None:
    """A change that was acknowledged is found, a replaced or deleted text is not."""
    for number in range(20):
        await write("a.md", f"unique{number}end")
        assert await paths(store, f"unique{number}end") == ["a.md"]
        assert await paths(store, f"unique{(number or 99) - 1}end") == []
    await store.delete("a.md", actor="a", reason="")
    assert await paths(store, "unique19end") == []


async def test_search_is_limited_to_its_path(store: GitMemoryStore, write: Write) -> None:
    """Only the folder or file that is named, and nothing that merely begins alike."""
    for path in ("a/x.md", "ab/x.md", "a.md"):
        await write(path, "word")
    assert await paths(store, "word", "a") == ["a/x.md"]
    assert await paths(store, "word", "ab/x.md") == ["ab/x.md"]
    assert [hit.path for hit in await find(store, "x", "ab", "filename")] == ["ab/x.md"]


async def test_names_are_found(store: GitMemoryStore, write: Write) -> None:
    """Every word must be in the path; those with it in the name come first."""
    await write("garden/plan.md", "-")
    await write("plan-b/garden.md", "-")
    hits = await find(store, "PLAN", kind="filename")
    assert [hit.path for hit in hits] == ["garden/plan.md", "plan-b/garden.md"]
    assert len(await find(store, "plan", kind="filename", limit=1)) == 1


@pytest.mark.parametrize(
    "query", ["C++ && §", "東京", '"quoted', "NEAR(", "a AND NOT", "*", "x'; DROP TABLE files; --"]
)
async def test_any_text_may_be_searched_for(store: GitMemoryStore, write: Write, query: str) -> None:
    """Signs, operators and scripts without spaces are found as they stand and never break anything."""
    await write("a.md", f"before\nand {query} there\n")
    assert "a.md" in await paths(store, query)


@pytest.mark.parametrize("query", ["", "   ", "\0", "?!"])
async def test_an_empty_search_finds_nothing(store: GitMemoryStore, query: str) -> None:
    """A query without words has no hits."""
    assert await find(store, query) == ()
    assert await find(store, "instructions", limit=0) == ()


async def test_conversations_are_found_by_their_messages(store: GitMemoryStore) -> None:
    """The hit is the message's line of the file and the text of the message, not its JSON, also as it grows."""
    for number in range(3):
        message = Message(id=f"m{number}", role="user", content=f'First line.\nSay "word{number}" now.\nEnd.')
        append = AppendConversation(block="main", conversation="c", messages=(message,), actor="gateway")
        await store.append_conversation(append)
        (hit,) = await find(store, f"word{number}")
        assert (hit.path, hit.line) == ("blocks/main/conversations/c/c.jsonl", number + 2)
        assert hit.content == f'Say "word{number}" now.'
    assert (await find(store, "word0"))[0].line == 2


async def test_binary_files_are_passed_over(opened: Opened, root: Path) -> None:
    """A picture in the root disturbs no search."""
    async with opened():
        (root / "x.png").write_bytes(b"\x89PNG\0needle")
        (root / "latin.txt").write_bytes("needle Käse".encode("latin-1"))
    async with opened() as store:
        assert await find(store, "needle") == ()


HARM = ["delete", "garbage", "empty", "other", "truncate"]


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
async def test_a_missing_or_damaged_index_is_rebuilt(
    harm: str, running: bool, opened: Opened, root: Path, tmp_path: Path
) -> None:
    """FS-6: deleted, damaged or foreign, while running or stopped: search finds the same as before."""
    async with opened():
        (root / "written.md").write_text("Written instructions.\n")
    async with opened() as store:
        message = Message(id="m", role="user", content="spoken needle")
        append = AppendConversation(block="main", conversation="c", messages=(message,), actor="gateway")
        await store.append_conversation(append)
        before = await find(store, "needle instructions")
        assert len(before) == 2
        if running:
            damage(tmp_path / "cache", harm)
            assert await find(store, "needle instructions") == before
    if not running:
        damage(tmp_path / "cache", harm)
    async with opened() as store:
        assert await find(store, "needle instructions") == before


def damage(cache: Path, harm: str) -> None:
    """Harm the index file."""
    file = cache / "memory.db"
    for extra in cache.glob("memory.db-*"):
        extra.unlink()
    data = file.read_bytes()
    file.unlink()
    if harm == "garbage":
        file.write_bytes(b"garbage" * 10_000)
    elif harm == "empty":
        file.write_bytes(b"")
    elif harm == "truncate":
        file.write_bytes(data[: len(data) // 2])
    elif harm == "other":
        with sqlite3.connect(file) as other:
            other.execute("CREATE TABLE files(x)")
            other.execute("PRAGMA user_version = 99")


async def test_an_index_of_another_history_is_rebuilt(opened: Opened, tmp_path: Path) -> None:
    """An index that stands at a commit this repository never had is not believed."""
    for name in ("one", "two"):
        async with opened(tmp_path / name) as store:
            await store.change(Change({f"{name}.md": b"needle"}, actor="a", reason=""))
    async with opened(tmp_path / "one") as store:
        assert [hit.path for hit in await find(store, "needle")] == ["one.md"]
    (tmp_path / "one/cache/memory.db").rename(tmp_path / "two/cache/memory.db")
    for extra in (tmp_path / "two/cache").glob("memory.db-*"):
        extra.unlink()
    async with opened(tmp_path / "two") as store:
        assert [hit.path for hit in await find(store, "needle")] == ["two.md"]


async def test_punctuation_in_a_query_hides_no_results(store: GitMemoryStore, write: Write) -> None:
    """A tag written by another program may hold a NUL or half a letter; its chunk is found, and all others too,
    after an update and after a rebuild of the index."""
    name = "chunk-2026-05-04-0000000a"
    tags = '["a\\u0000b", "c\\ud800d", "pruning"]'
    chunk = f'{{"id": "{name}", "content": "Roses in May.", "type": "note", "tags": {tags}}}'
    await write("a.md", "Cut the roses.")
    await write(f"chunks/2026-05-04/{name}.json", chunk)
    for _ in range(2):
        assert len(await paths(store, "roses")) == 2
        assert await paths(store, "pruning") == [f"chunks/2026-05-04/{name}.json"]
        await store.reindex(lambda progress: None)


async def test_the_size_of_the_index_is_that_of_its_file(opened: Opened, tmp_path: Path) -> None:
    """It is the same before SQLite has written its log back, and after."""
    async with opened() as store:
        await store.change(Change({"a.md": b"quetzal " * 200}, actor="agent", reason=""))
        size = (await store.index_stats()).size
        assert (tmp_path / "cache/memory.db").stat().st_size < size
    assert (tmp_path / "cache/memory.db").stat().st_size == size
