"""The order of hits and the reasons that a hit gives: words and stems, tags, adjacent messages, dates, links,
spelling."""

import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from trunkline.contracts.conversations.messages import AppendConversation, Message
from trunkline.contracts.memory.search import MemoryHit, SearchMemory
from trunkline.contracts.memory.store import Change
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Write = Callable[..., Awaitable[str]]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]
NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)  # a Wednesday


class Chunks:
    """Writes chunk files as another program might: only what must be there."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._count = 0

    async def add(self, content: str, *, age: float = 0, **known: object) -> str:
        """One more chunk, ``age`` days old; its id."""
        self._count += 1
        name = f"chunk-2026-11-01-{self._count:08x}"
        created = (NOW - timedelta(days=age)).isoformat()
        metadata = {"created_at": created, "confidence": known.pop("confidence", 0.7)}
        if "conversation" in known:
            metadata["conversation_id"] = known.pop("conversation")
        chunk = {"id": name, "content": content, "type": "note", "metadata": metadata, **known}
        await self._write(f"chunks/2026-11-01/{name}.json", json.dumps(chunk))
        return name


@pytest.fixture
def chunks(write: Write) -> Chunks:
    return Chunks(write)


async def find(store: GitMemoryStore, query: str, **narrowed: object) -> tuple[MemoryHit, ...]:
    """Search, seen from a certain Wednesday."""
    return await store.search(SearchMemory(query=query, asked_at=NOW, **narrowed))  # type: ignore[arg-type]


def signals(hit: MemoryHit) -> dict[str, str]:
    """Return the signals that raised a hit, with their details."""
    return {why.signal: why.detail for why in hit.why}


async def say(
    store: GitMemoryStore, *said: str, conversation: str = "talk", at: datetime = NOW, names: str = ""
) -> None:
    """Say something in a conversation, a turn after the other, a minute apart."""
    messages = tuple(
        Message(
            id=f"{conversation}-{number}",
            role="assistant" if number % 2 else "user",
            name=names.split()[number % 2] if names else None,
            content=text,
            created_at=at + timedelta(minutes=number),
        )
        for number, text in enumerate(said)
    )
    await store.append_conversation(
        AppendConversation(block="main", conversation=conversation, messages=messages, actor="owner")
    )


# Words ---------------------------------------------------------------------------------------------------------


async def test_mn_t14_a_rare_word_outscores_a_common_one(store: GitMemoryStore, write: Write) -> None:
    """MN-T14: BM25. A word that occurs nowhere finds nothing, and an empty memory returns nothing."""
    for number in range(20):
        await write(
            f"n{number}.md", "everybody talks of the weather" + (" and of zeppelins" if number == 7 else "")
        )
    hits = await find(store, "weather zeppelins")
    assert hits[0].path == "n7.md" and hits[0].score > hits[1].score
    assert await find(store, "xylophone") == ()


async def test_words_with_one_stem_count_as_one(store: GitMemoryStore, write: Write) -> None:
    """Who asks in several forms of a word finds with the same score as who asks in one."""
    await write("race.md", "She runs a race every spring.")
    await write("other.md", "A boat.")
    (once,), (thrice,) = await find(store, "run"), await find(store, "running runs run")
    assert once.score == thrice.score


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The dogs were running through the rivers.", "dog run river"),
        ("Die Häuser am Fluss wurden alle neu gebaut.", "Haus bauen Flüsse"),
        ("Les chevaux mangeaient dans les prairies.", "mangeait prairie"),
        ("Las casas de mi madre son bonitas.", "casa bonita"),
        ("Дети читали книги в школе.", "книга школа"),
    ],
)
async def test_inflections_are_found(store: GitMemoryStore, write: Write, text: str, query: str) -> None:
    """A word is found in another form of it, each text by the rules of its own language."""
    await write("others.md", "The cat sat on the mat, and it was in the sun with us.")
    await write("text.md", text)
    assert [hit.path for hit in await find(store, query)] == ["text.md"]


async def test_scripts_without_spaces_are_found_within(store: GitMemoryStore, write: Write) -> None:
    """Two signs out of a sentence, or one, and the best place first."""
    await write("a.md", "我昨天在东京吃了拉面。")
    await write("b.md", "北京很冷。")
    assert [hit.path for hit in await find(store, "东京")] == ["a.md"]
    assert (await find(store, "拉面 东京"))[0].path == "a.md"
    assert [hit.path for hit in await find(store, "冷")] == ["b.md"]
    assert [hit.path for hit in await find(store, "昨")] == ["a.md"]


async def test_rlm_t6_misspelt_words_are_understood(store: GitMemoryStore, chunks: Chunks) -> None:
    """RLM-T6: "pytesst prefernce" finds the preference for pytest, with the corrected query; nonsense finds nothing."""
    wanted = await chunks.add("User prefers pytest over unittest")
    await chunks.add("The garden needs water")
    hit = (await find(store, "pytesst prefernce"))[0]
    assert hit.id == wanted
    assert "pytesst → pytest" in signals(hit)["words"]
    assert await find(store, "qqqzzz wwwxxx") == ()


async def test_limit_and_conversation_are_respected(store: GitMemoryStore, chunks: Chunks) -> None:
    """RLM-T6: no more than asked for, and only of the conversation that is named."""
    for number in range(6):
        await chunks.add(f"apples number {number}", conversation="c1" if number % 2 else "c2")
    assert len(await find(store, "apples", limit=2)) == 2
    assert {hit.conversation for hit in await find(store, "apples", conversation="c1")} == {"c1"}


# Chunks --------------------------------------------------------------------------------------------------------


async def test_rlm_t5_a_tag_outranks_the_word(store: GitMemoryStore, chunks: Chunks) -> None:
    """RLM-T5: a tag states the topic. Three occurrences outrank one."""
    await chunks.add("pears and plums, and more of both of these in the cellar")
    once = await chunks.add("apples and other fruit that lie in the cellar until the spring")
    often = await chunks.add("apples, apples, apples and other fruit that lie until the spring")
    tagged = await chunks.add("fruit that lies in the cellar until the spring comes around", tags=["apples"])
    hits = await find(store, "apples")
    assert [hit.id for hit in hits] == [tagged, often, once]
    assert signals(hits[0])["tags"] == "apples"


async def test_rlm_t5_equal_texts_rank_by_confidence_then_newest(
    store: GitMemoryStore, chunks: Chunks
) -> None:
    """RLM-T5: equal text: higher confidence, then newer first."""
    old = await chunks.add("the gate is blue", age=300, confidence=0.7)
    new = await chunks.add("the gate is blue", age=1, confidence=0.7)
    sure = await chunks.add("the gate is blue", age=300, confidence=1.0)
    assert [hit.id for hit in await find(store, "blue gate")] == [sure, new, old]


async def test_an_archived_chunk_is_not_found(store: GitMemoryStore, chunks: Chunks, write: Write) -> None:
    """RLM-T16: neither by its words, nor by its tags, nor by the text as it stands."""
    name = await chunks.add("the kohlrabi is §eaten§", tags=["vegetables"])
    assert len(await find(store, "kohlrabi")) == 1
    await store.move(
        f"chunks/2026-11-01/{name}.json", f"chunks/archive/2026-11-01/{name}.json", actor="owner", reason=""
    )
    for query in ("kohlrabi", "vegetables", "§eaten§", name):
        assert await find(store, query) == ()


async def test_linked_chunks_are_ranked(store: GitMemoryStore, chunks: Chunks) -> None:
    """A chunk without any of the words is found by the link to one that has them, in either direction."""
    reported = await chunks.add("We went with PostgreSQL.")
    link = {"target_id": reported, "type": "supports", "strength": 1.0, "created_at": NOW.isoformat()}
    await chunks.add("Replication was the reason.", links=[link])
    first, second = await find(store, "postgresql")
    assert first.id == reported
    assert (second.content, signals(second)["link"]) == (
        "Replication was the reason.",
        f"supports {reported}",
    )


async def test_filters_narrow(store: GitMemoryStore, chunks: Chunks, write: Write) -> None:
    """Kinds, tags (all of them), confidence, and the time from ... to before ..."""
    fact = await chunks.add("The beans are ripe", type="fact", tags=["garden", "food"], confidence=0.9)
    note = await chunks.add("Beans again", tags=["garden"], confidence=0.2, age=40)
    await write("documents/beans.md", "All about beans.")
    assert {hit.kind for hit in await find(store, "beans")} == {"fact", "chunk", "document"}
    assert [hit.id for hit in await find(store, "beans", kinds=("fact",))] == [fact]
    assert [hit.id for hit in await find(store, "beans", tags=("garden", "Food"))] == [fact]
    assert note not in [hit.id for hit in await find(store, "beans", min_confidence=0.5)]
    late = NOW - timedelta(days=30)
    assert [hit.id for hit in await find(store, "beans", since=late)] == [fact]
    assert [hit.id for hit in await find(store, "beans", until=late)] == [note]


# Conversations -------------------------------------------------------------------------------------------------


async def test_adjacent_messages_help_to_find_a_short_turn(store: GitMemoryStore) -> None:
    """An answer that repeats none of the question's words is found by the messages around it, and the hit reports
    this."""
    await say(
        store,
        "Which colour did you choose for the kitchen cupboard?",
        "The dark green one.",
        "Lovely.",
        "And now something else entirely, about trains.",
        conversation="c",
    )
    hits = await find(store, "colour kitchen cupboard", conversation="c")
    answer = next(hit for hit in hits if hit.content == "The dark green one.")
    assert signals(answer)["neighbours"] == "colour, kitchen, cupboard"
    assert "talk-3" not in [hit.id for hit in hits]


async def test_a_message_that_forks_repeat_is_one_hit(store: GitMemoryStore) -> None:
    """A fork begins with the messages of its conversation, under their ids. Whoever edits a message five times is not
    shown the one before it six times. The same words said again are another message."""
    told = Message(id="msg_told", role="user", content="The bicycle stands in the cellar.", created_at=NOW)
    for number in range(3):
        said = (told, Message(id=f"msg_{number}", role="user", content=f"Version {number}.", created_at=NOW))
        await store.append_conversation(
            AppendConversation(block="main", conversation=f"fork-{number}", messages=said, actor="owner")
        )
    await say(store, "The bicycle stands in the cellar.", conversation="later")
    hits = await find(store, "bicycle cellar")
    assert sorted(hit.id for hit in hits if hit.content == told.content) == ["later-0", "msg_told"]


async def test_a_long_turn_does_not_hide_the_short_one_beside_it(store: GitMemoryStore) -> None:
    """A short answer to a long message is found before a longer text of somebody else that has the same words: each
    field has its own length."""
    await say(
        store, "We talked about the house. " * 20, "The spare key is under the pot.", conversation="short"
    )
    rival = (
        "Somebody told a story in which the spare key of a boat lay in a pot. " + "It was a dull story. " * 8
    )
    await say(store, rival, conversation="rival")
    hits = await find(store, "spare key pot")
    assert (hits[0].conversation, hits[0].content) == ("short", "The spare key is under the pot.")


async def test_a_turn_that_only_repeats_the_query_comes_later(store: GitMemoryStore) -> None:
    """Who says no other word than those searched for asked the same, and tells nothing."""
    await say(store, "climbing frame", "The climbing frame for the beans stands behind the shed.")
    assert (await find(store, "climbing frame"))[0].content.startswith("The climbing frame for the beans")


async def test_messages_after_a_pause_are_not_adjacent(store: GitMemoryStore) -> None:
    """A message sent an hour later, or an adjacent one that matches a single word only, belongs to another topic."""
    await say(store, "The kitchen cupboard is blue.", conversation="c", at=NOW - timedelta(days=2))
    await say(store, "The kitchen cupboard is blue.", "Good morning!", conversation="c", at=NOW)
    hits = await find(store, "kitchen cupboard", conversation="c")
    assert [hit.id for hit in hits] == ["c-0"]


async def test_a_growing_conversation_is_indexed_like_a_complete_one(opened: Opened, tmp_path: Path) -> None:
    """A new message changes the neighbours of the last turns; a rebuilt index gives the same result."""
    said = ["Where is the spare key?", "Under the pot.", "Which pot?", "The red one.", "Found it, thanks."]
    async with opened() as store:
        for count in range(1, len(said) + 1):
            await say(store, *said[:count], conversation="c")
            await find(store, "key")
        before = await find(store, "spare key pot", conversation="c")
        assert len(before) == 3
        await store.reindex(lambda progress: None)
        assert await find(store, "spare key pot", conversation="c") == before


async def test_a_named_speaker_ranks_first(store: GitMemoryStore) -> None:
    """The turn of the one who is asked for comes first, and one who asks seldom answers."""
    await say(
        store,
        "I would love a dog.",
        "I would love a dog.",
        conversation="c",
        names="Anna Ben",
        at=NOW - timedelta(days=1),
    )
    assert (await find(store, "does Ben love dogs", conversation="c"))[0].speaker == "ben"
    assert {hit.speaker for hit in await find(store, "dog", speaker="Anna")} == {"anna"}
    await say(store, "Is the ferry late?", conversation="d")
    await say(store, "The ferry is late.", conversation="e")
    assert [hit.conversation for hit in await find(store, "ferry late")] == ["e", "d"]


@pytest.mark.parametrize(
    ("query", "day"),
    [("what of the boiler last Tuesday", 17), ("boiler 2 days ago", 16), ("boiler on 2026-11-12", 12)],
)
async def test_dates_in_a_question_count(store: GitMemoryStore, query: str, day: int) -> None:
    """Messages from the time that the question names rank first."""
    for number in (12, 16, 17):
        when = datetime(2026, 11, number, 9, tzinfo=UTC)
        await say(store, "We spoke of the boiler.", conversation=f"c{number}", at=when)
    hit = (await find(store, query))[0]
    assert hit.conversation == f"c{day}"
    assert "date" in signals(hit)


async def test_a_query_with_only_a_time_lists_that_time(store: GitMemoryStore) -> None:
    """Without any other word, hits are listed by time: the newest first."""
    await say(store, "Roses.", "Tulips.", conversation="c", at=datetime(2026, 11, 17, 9, tzinfo=UTC))
    await say(store, "Daisies.", conversation="d", at=datetime(2026, 11, 2, 9, tzinfo=UTC))
    hits = await find(store, "yesterday", kinds=("turn",))
    assert [hit.content for hit in hits] == ["Tulips.", "Roses."]


async def test_relative_dates_count_from_the_time_of_the_conversation(store: GitMemoryStore) -> None:
    """In a conversation that ended long ago, "yesterday" is the day before it ended."""
    end = datetime(2023, 5, 8, 9, tzinfo=UTC)
    await say(store, "A picnic.", conversation="c", at=end - timedelta(days=1))
    await say(store, "A picnic.", "A storm.", "A picnic again.", conversation="c", at=end)
    hits = await store.search(SearchMemory(query="picnic yesterday", conversation="c"))
    assert hits[0].id == "c-0"


# The index -----------------------------------------------------------------------------------------------------


async def test_rlm_t17_a_rebuilt_index_finds_the_same(opened: Opened, tmp_path: Path) -> None:
    """RLM-T17, FS-6: all of it deleted, with every kind of passage in memory: the same hits, scores and reasons."""
    questions = ("apples", "beans garden", "spare key", "apple cellar yesterday", "prefernce")
    async with opened() as store:
        chunks = Chunks(_writing(store))
        first = await chunks.add("apples in the cellar", tags=["fruit"])
        await chunks.add(
            "User prefers beans", type="preference", links=[{"target_id": first, "type": "supports"}]
        )
        await _writing(store)("documents/garden.md", "# Garden\n\nBeans and apples.\n")
        await say(store, "Where is the spare key?", "Under the pot.", "With the apples.", conversation="c")
        await _writing(store)("documents/garden.md", "# Garden\n\nBeans, peas and apples.\n")
        before = [await find(store, question) for question in questions]
        assert all(before[:3])
    for file in (tmp_path / "cache").glob("memory.db*"):
        file.unlink()
    async with opened() as store:
        assert [await find(store, question) for question in questions] == before
        stats = await store.reindex(lambda progress: None)
        assert stats.kinds["turn"] == 3 and stats.vectors is None
        assert [await find(store, question) for question in questions] == before


def _writing(store: GitMemoryStore) -> Write:
    async def write(path: str, text: str) -> str:
        return await store.change(Change({path: text.encode()}, actor="agent", reason=""))

    return write


async def test_every_score_follows_from_its_signals(store: GitMemoryStore, chunks: Chunks) -> None:
    """Additive signals are added, factors are multiplied: nothing else decides."""
    adding = {"words", "neighbours", "meaning", "link", "time"}
    await chunks.add("the apples of Anna", tags=["apples"], confidence=0.4, age=10)
    await say(store, "Apples?", "Apples, last week.", conversation="c", names="Anna Ben")
    for hit in await find(store, "apples Anna last week"):
        score = sum(why.weight for why in hit.why if why.signal in adding)
        for why in hit.why:
            score *= 1 if why.signal in adding else why.weight
        assert hit.score == pytest.approx(score, rel=0.01)


async def test_good_passages_of_a_conversation_outrank_poor_ones_of_others(
    store: GitMemoryStore,
) -> None:
    """Passages are ranked, not files: the first hit of a search without ``kinds`` is the first of one for turns."""
    said = {
        "garden": ("The garden gate is painted green.", "We talked.", "Paint the garden gate green again."),
        **{f"other-{number}": ("Somebody stood at a gate.", "And went.") for number in range(6)},
    }
    for conversation, texts in said.items():
        messages = tuple(
            Message(id=f"{conversation}-{number}", role="user", content=text)
            for number, text in enumerate(texts)
        )
        await store.append_conversation(
            AppendConversation(block="main", conversation=conversation, messages=messages, actor="gateway")
        )
    query = "painting the garden gate green"
    found = await store.search(SearchMemory(query=query, limit=5))
    assert {hit.id for hit in found[:2]} == {"garden-0", "garden-2"}
    narrowed = await store.search(SearchMemory(query=query, limit=5, kinds=("turn",)))
    assert [hit.id for hit in found] == [hit.id for hit in narrowed]
