"""Remembering, recalling, linking and forgetting chunks, on a real store (RLM-T1, T3 to T6, T16, T17)."""

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from trunkline.contracts.memory.chunks import CountChunks, PruneChunks, Remember, UpdateChunk
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.store import Change
from trunkline_bus import Refusal, Scope

from .conftest import Chunks, chunks_at

pytestmark = pytest.mark.anyio


async def test_rlm_t1_each_kind_of_sentence_is_one_chunk_of_its_type(chunks: Chunks) -> None:
    """RLM-T1: a remembered sentence is typed by its words and returned unchanged."""
    for text, kind in (
        ("User prefers dark mode", "preference"),
        ("We decided to use Postgres", "decision"),
        ("He usually deploys on Friday", "pattern"),
        ("Anna works at X", "fact"),
        ("Rain in March", "note"),
    ):
        held = await chunks.get(await chunks.keep(text))
        assert held is not None
        assert (held.content, held.type) == (text, kind)


async def test_a_chunk_is_a_file_that_a_person_can_read(chunks: Chunks, tmp_path: Path) -> None:
    """RLM-F1, F2: one JSON file in the folder of its day, one key a line, with the fields that the requirement
    names."""
    chunk = await chunks.keep("User prefers dark mode", tags=("ui",))
    file = tmp_path / "memory/blocks/main/chunks/2026-05-04" / f"{chunk}.json"
    text = file.read_text()
    held = json.loads(text)
    assert set(held) == {"id", "content", "tokens", "type", "tags", "metadata", "links"}
    assert held["metadata"]["created_at"].startswith("2026-05-04T12:00:00")
    assert {"created_at", "modified_at", "confidence", "conversation_id", "source"} <= set(held["metadata"])
    assert '\n  "content": "User prefers dark mode",\n' in text
    assert text.endswith("}\n")


async def test_reading_a_chunk_is_counted_outside_of_history(chunks: Chunks, tmp_path: Path) -> None:
    """C12: reading changes neither file nor history, and the count is shown."""
    chunk = await chunks.keep("User prefers dark mode")
    before = await chunks.store.history("", limit=10)
    await chunks.get(chunk)
    chunks.later(minutes=1)
    await chunks.get(chunk)
    held = await chunks.get(chunk)
    assert held is not None
    assert held.access_count == 3
    assert held.accessed_at == chunks.time
    assert await chunks.store.history("", limit=10) == before


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"confidence": -0.1}, "invalid_value"),
        ({"confidence": 1.1}, "invalid_value"),
        ({"chunk_type": "opinion"}, "invalid_type"),
        ({"conversation_id": " "}, "invalid_value"),
        ({"tags": ("",)}, "invalid_value"),
        ({"layer": "user_global"}, "forbidden"),
        ({"chunk_type": "api_endpoint", "fields": {"method": "GET"}}, "missing_required_fields"),
        ({"chunk_type": "api_endpoint", "fields": {"method": "GET", "path": "/", "x": 1}}, "invalid_fields"),
    ],
)
async def test_rlm_t3_an_invalid_chunk_is_refused_and_nothing_is_written(
    chunks: Chunks, more: dict[str, Any], code: str
) -> None:
    """RLM-T3: confidence out of range, unknown type, no conversation, and the rest: refused with a code."""
    request = {"content": "x", "actor": "agent", "conversation_id": "c1", "block": "main", **more}
    before = await chunks.store.history("", limit=1)
    with pytest.raises(Refusal) as refused:
        await chunks.writer.remember(Remember(**request), Scope())
    assert refused.value.code == code
    assert await chunks.store.history("", limit=1) == before


@pytest.mark.parametrize("blank", ["", "   ", "\n\t\n"])
async def test_rlm_t3_blank_text_is_refused(chunks: Chunks, blank: str) -> None:
    """RLM-T3: nothing is written for a text that says nothing."""
    request = Remember(content=blank, actor="agent", conversation_id="c1", block="main")
    done = await chunks.writer.remember(request, Scope())
    assert (done.success, done.chunk_ids, done.chunks_created) == (False, (), 0)
    assert await chunks.ids() == []


async def test_rlm_t3_the_ends_of_confidence_are_fine_and_twice_is_allowed(chunks: Chunks) -> None:
    """RLM-T3: 0 and 1 are confidences; the same text may be remembered twice."""
    first = await chunks.keep("x", confidence=0)
    second = await chunks.keep("x", confidence=1)
    assert first != second


async def test_rlm_t4_chunks_of_a_conversation_are_each_others_context(chunks: Chunks) -> None:
    """RLM-T4: context_of in both directions with strength 1; two minutes apart follows .6, six minutes not."""
    first = await chunks.keep("one")
    chunks.later(minutes=2)
    second = await chunks.keep("two")
    chunks.later(minutes=6)
    third = await chunks.keep("three")
    for one, others in ((first, {second, third}), (second, {first, third})):
        context = await chunks.links(one, "context_of")
        assert {link.chunk.id for link in context} == others
        assert {link.strength for link in context} == {1.0}
    (follows,) = await chunks.links(second, "follows")
    assert (follows.chunk.id, follows.strength, follows.incoming) == (first, 0.6, False)
    (followed,) = await chunks.links(first, "follows")
    assert (followed.chunk.id, followed.strength, followed.incoming) == (second, 0.6, True)
    assert await chunks.links(third, "follows") == []


async def test_rlm_t4_shared_tags_relate_chunks_of_different_conversations(chunks: Chunks) -> None:
    """RLM-T4: two shared tags .7, at most .9; not where context_of holds."""
    first = await chunks.keep("one", tags=("a", "b"))
    chunks.later(hours=1)
    second = await chunks.keep("two", conversation="c2", tags=("A", "b", "x"))
    same = await chunks.keep("three", tags=("a", "b"))
    many = await chunks.keep("four", conversation="c3", tags=tuple("abxyz"))
    related = {link.chunk.id: link.strength for link in await chunks.links(first, "related_to")}
    assert related == {second: 0.7, many: 0.7}
    assert same not in related
    assert {one.chunk.id: one.strength for one in await chunks.links(second, "related_to")}[many] == 0.9
    assert all(link.automatic for link in await chunks.links(first))


async def test_manual_links_are_visible_from_both_ends_and_in_the_file(
    chunks: Chunks, tmp_path: Path
) -> None:
    """RLM-F8: supports and contradicts are in the source's file; a second link changes the strength."""
    first, second = await chunks.keep("one", conversation="c1"), await chunks.keep("two", conversation="c2")
    await chunks.link(first, second, "contradicts", strength=0.5)
    await chunks.link(first, second, "contradicts", strength=0.8)
    (out,) = await chunks.links(first, "contradicts")
    (come,) = await chunks.links(second, "contradicts")
    assert (out.chunk.id, out.strength, out.incoming, out.automatic) == (second, 0.8, False, False)
    assert (come.chunk.id, come.strength, come.incoming) == (first, 0.8, True)
    held = await chunks.get(first)
    assert held is not None
    file = json.loads((tmp_path / "memory" / held.path).read_text())
    assert [(one["target_id"], one["type"], one["strength"]) for one in file["links"]] == [
        (second, "contradicts", 0.8)
    ]
    await chunks.link(first, second, "contradicts", remove=True)
    assert await chunks.links(first, "contradicts") == []


async def test_link_types_are_the_known_ones(chunks: Chunks) -> None:
    """RLM-F5: custom types that a plugin adds, not any word, and none that is made by itself."""
    first, second = await chunks.keep("one"), await chunks.keep("two")
    await chunks.link(first, second, "depends_on")
    for kind in ("admires", "context_of"):
        with pytest.raises(Refusal, match=kind):
            await chunks.link(first, second, kind)
    with pytest.raises(Refusal):
        await chunks.link(first, first, "supports")
    with pytest.raises(Refusal):
        await chunks.link(first, "chunk-2026-05-04-00000000", "supports")


async def test_custom_types_carry_their_fields(chunks: Chunks) -> None:
    """RLM-F5: a type with fields keeps them with the chunk."""
    fields = {"method": "GET", "path": "/health"}
    chunk = await chunks.keep("Says how it is", chunk_type="api_endpoint", fields=fields)
    held = await chunks.get(chunk)
    assert held is not None
    assert (held.type, held.metadata.fields) == ("api_endpoint", fields)


async def test_rlm_t5_tags_outrank_words_and_more_matches_outrank_fewer(chunks: Chunks) -> None:
    """RLM-T5: the tagged chunk outranks the one with the word in its text; three occurrences outrank one."""
    once = await chunks.keep("There are apples in the shed", conversation="c1")
    thrice = await chunks.keep("apples and apples and apples", conversation="c2")
    tagged = await chunks.keep("Fruit that keeps through the winter", tags=("apples",), conversation="c3")
    found = list((await chunks.recall("apples")).source_chunks)
    assert set(found) == {once, thrice, tagged}
    assert found.index(tagged) < found.index(once)
    assert found.index(thrice) < found.index(once)


async def test_rlm_t5_higher_confidence_first_then_newer(chunks: Chunks) -> None:
    """RLM-T5: of equal texts the one with more confidence, then the newer one."""
    older = await chunks.keep("The apples are red", confidence=0.8)
    chunks.later(hours=1)
    newer = await chunks.keep("The apples are red", confidence=0.8)
    surest = await chunks.keep("The apples are red", confidence=0.9)
    chunks.later(hours=1)
    unsure = await chunks.keep("The apples are red", confidence=0.6)
    assert list((await chunks.recall("apples")).source_chunks) == [surest, newer, older, unsure]


async def test_rlm_t6_misspelt_words_find(chunks: Chunks) -> None:
    """RLM-T6: "pytesst prefernce" finds the pytest preference, among others."""
    for number in range(20):
        await chunks.keep(f"Note {number} about pruning pears", conversation=f"c{number}")
    wanted = await chunks.keep("User has a pytest preference: short tracebacks")
    assert next(iter((await chunks.recall("pytesst prefernce")).source_chunks)) == wanted


async def test_rlm_t6_nonsense_finds_nothing_and_limits_hold(chunks: Chunks) -> None:
    """RLM-T6: empty with confidence 0; no more than asked for; only the conversation, type and tags asked for."""
    for number in range(8):
        await chunks.keep("The apples are red", conversation=f"c{number}", tags=(f"t{number}",))
    nothing = await chunks.recall("xyzzy qwrtp")
    assert (nothing.answer, nothing.confidence, nothing.source_chunks) == ("", 0.0, ())
    for blank in ("", "  ", "?!"):
        assert (await chunks.recall(blank)).source_chunks == ()
    assert len((await chunks.recall("apples", max_results=3)).source_chunks) == 3
    assert len((await chunks.recall("apples", conversation_id="c4")).source_chunks) == 1
    assert len((await chunks.recall("apples", tags=("T5",))).source_chunks) == 1
    assert (await chunks.recall("apples", chunk_type="decision")).source_chunks == ()
    assert (await chunks.recall("apples", min_confidence=0.71)).source_chunks == ()


async def test_recall_explains_its_hits(chunks: Chunks) -> None:
    """RLM-F10: the answer has its certainty, its sources, the chunks examined, and each signal's part."""
    chunk = await chunks.keep("The apples are in the shed", tags=("apples",))
    found = await chunks.recall("apples shed")
    assert found.answer == "The apples are in the shed"
    assert found.confidence == 0.7
    assert found.traversal_path == (chunk,)
    assert (found.iterations_used, found.cost_usd) == (0, 0.0)
    (one,) = found.chunks
    assert one.score > 0
    assert {"words", "tags"} <= set(one.why)


async def test_lists_are_filtered(chunks: Chunks) -> None:
    """RLM-F4: all of the tags, conversation, type, time; newest first, in pages, with the total."""
    start = chunks.time
    made = []
    for number in range(6):
        tags = ("even",) if number % 2 == 0 else ("odd",)
        made.append(await chunks.keep(f"n{number}", conversation=f"c{number % 3}", tags=("all", *tags)))
        chunks.later(hours=1)
    assert await chunks.ids() == made[::-1]
    assert await chunks.ids(tags=("all", "EVEN")) == [made[4], made[2], made[0]]
    assert await chunks.ids(tags=("even", "odd")) == []
    assert await chunks.ids(conversation_id="c1") == [made[4], made[1]]
    assert await chunks.ids(created_after=start + timedelta(hours=4)) == [made[5], made[4]]
    assert await chunks.ids(created_before=start) == [made[0]]
    assert await chunks.ids(chunk_type="decision") == []
    assert await chunks.ids(limit=2, offset=1) == [made[4], made[3]]


async def test_a_chunk_is_changed_in_place(chunks: Chunks) -> None:
    """Text, tags, confidence and type change; the id, the making and the links stay."""
    chunk, other = await chunks.keep("one", tags=("a",)), await chunks.keep("two")
    await chunks.link(chunk, other, "supports")
    before = await chunks.get(chunk)
    chunks.later(hours=1)
    request = UpdateChunk(
        id=chunk, actor="agent", block="main", content="We decided", tags=("b",), confidence=1.0
    )
    await chunks.writer.update(request, Scope())
    after = await chunks.get(chunk)
    assert before is not None
    assert after is not None
    assert (after.content, after.tags, after.metadata.confidence) == ("We decided", ("b",), 1.0)
    assert (after.metadata.created_at, after.links) == (before.metadata.created_at, before.links)
    assert after.metadata.modified_at == chunks.time
    assert await chunks.ids(tags=("a",)) == []
    assert list((await chunks.recall("decided")).source_chunks) == [chunk]


async def test_rlm_t16_deleted_is_archived_and_can_be_restored(chunks: Chunks, tmp_path: Path) -> None:
    """RLM-T16: gone from list, recall, tags and links; in the archive; and back as it was."""
    chunk, other = await chunks.keep("red apples", tags=("fruit",)), await chunks.keep("green pears")
    before = await chunks.get(chunk)
    await chunks.delete(chunk)
    assert await chunks.get(chunk) is None
    assert await chunks.ids() == [other]
    assert await chunks.ids(tags=("fruit",)) == []
    assert (await chunks.recall("apples")).source_chunks == ()
    assert await chunks.links(other) == []
    assert await chunks.ids(archived=True) == [chunk]
    assert (tmp_path / "memory/blocks/main/chunks/archive/2026-05-04" / f"{chunk}.json").exists()
    await chunks.restore(chunk)
    after = await chunks.get(chunk)
    assert before is not None
    assert after is not None
    assert (after.content, after.tags, after.path) == (before.content, before.tags, before.path)
    assert list((await chunks.recall("apples")).source_chunks) == [chunk]


@pytest.mark.parametrize("archived", [False, True])
async def test_rlm_t16_a_forgotten_chunk_remains_in_history_only(
    chunks: Chunks, tmp_path: Path, archived: bool
) -> None:
    """RLM-T16: no file and no index has it, archived before or not; history still does."""
    chunk = await chunks.keep("The zebra is striped")
    if archived:
        await chunks.delete(chunk)
    await chunks.forget(chunk)
    assert await chunks.get(chunk, archived=True) is None
    assert (await chunks.recall("zebra")).source_chunks == ()
    assert not list((tmp_path / "memory").rglob(f"{chunk}.json"))
    with pytest.raises(Refusal, match=chunk):
        await chunks.forget(chunk)
    changes = await chunks.store.history("blocks/main", limit=20)
    assert any(chunk in change.message for change in changes)


async def test_expired_chunks_are_not_shown(chunks: Chunks) -> None:
    """After its end a chunk is shown to no reader."""
    chunk = await chunks.keep("apples until Friday", expires_at=chunks.time + timedelta(days=1))
    assert list((await chunks.recall("apples")).source_chunks) == [chunk]
    chunks.later(days=2)
    assert (await chunks.recall("apples")).source_chunks == ()
    assert await chunks.ids() == []


async def test_rlm_t17_rebuilt_indexes_give_the_same_recall(tmp_path: Path) -> None:
    """RLM-T17: when all that is derived is deleted, it is made again and gives the same results."""
    queries = ("apples", "shed red", "fruit", "aples")
    async with chunks_at(tmp_path) as chunks:
        for number in range(12):
            chunks.later(minutes=1)
            text = f"The {['red', 'green'][number % 2]} apples of tree {number} are in the shed"
            await chunks.keep(text, conversation=f"c{number % 3}", tags=("fruit",) if number % 3 else ())
        start, one = chunks.time, (await chunks.ids())[3]
        before = [(await chunks.recall(query, max_results=12)).source_chunks for query in queries]
        linked = [(link.type, link.chunk.id) for link in await chunks.links(one)]
    shutil.rmtree(tmp_path / "cache")
    async with chunks_at(tmp_path) as chunks:
        chunks.time = start
        assert [(await chunks.recall(query, max_results=12)).source_chunks for query in queries] == before
        assert [(link.type, link.chunk.id) for link in await chunks.links(one)] == linked
    assert all(before)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "invalid_json"),
        pytest.param("[" * 100_000, "invalid_json", id="nested"),
        ("[]", "invalid_record_type"),
        ('{"id": "x"}', "missing_required_fields"),
        ('{"id": "chunk-2026-05-04-ffffffff", "content": "x", "type": "note"}', "invalid_scope"),
        ('{"id": "chunk-2026-05-04-00000000", "content": 5, "type": [], "tags": 7}', "invalid_record_type"),
    ],
)
async def test_a_corrupt_file_is_skipped_and_reported(
    chunks: Chunks, tmp_path: Path, text: str, code: str
) -> None:
    """RLM-F4, F20: never an exception: the others are found, and the counts name it with a code."""
    kept = await chunks.keep("apples")
    file = tmp_path / "memory/blocks/main/chunks/2026-05-04/chunk-2026-05-04-00000000.json"
    file.write_text(text)
    await chunks.keep("pears", conversation="c2")
    await chunks.store._maintenance.commit_external_edits()
    assert await chunks.get("chunk-2026-05-04-00000000") is None
    assert kept in await chunks.ids()
    assert list((await chunks.recall("apples")).source_chunks) == [kept]
    counts = await chunks.reader.counts(CountChunks())
    assert [(one.path, one.code) for one in counts.broken] == [
        (str(file.relative_to(tmp_path / "memory")), code)
    ]
    assert counts.total_chunks == 2


@pytest.mark.parametrize(
    "made", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-05-04T00:00:00"]
)
async def test_a_chunk_of_any_time_is_found(chunks: Chunks, tmp_path: Path, made: str) -> None:
    """Times that no year of UTC holds, or of no zone, as another program may write them."""
    name = "chunk-2026-05-04-0000000b"
    file = tmp_path / f"memory/blocks/main/chunks/2026-05-04/{name}.json"
    file.parent.mkdir(parents=True)
    reported = {"created_at": made, "expires_at": "9999-12-31T23:59:59-14:00"}
    file.write_text(
        json.dumps({"id": name, "content": "Bees like thyme", "type": "fact", "metadata": reported})
    )
    await chunks.store._maintenance.commit_external_edits()
    assert [hit.id for hit in await chunks.store.search(SearchMemory(query="thyme"))] == [name]
    assert await chunks.ids() == [name]
    found = await chunks.get(name)
    assert found is not None and found.metadata.created_at.tzinfo is not None
    for question in ("thyme", "thyme in May 2026"):
        assert list((await chunks.recall(question)).source_chunks) == [name]


async def test_a_chunk_that_a_person_writes_by_hand_counts(chunks: Chunks, tmp_path: Path) -> None:
    """The least that a file needs: id, content and type; the rest has defaults."""
    file = tmp_path / "memory/blocks/main/chunks/2026-05-04/chunk-2026-05-04-0000000a.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"id": "chunk-2026-05-04-0000000a", "content": "Bees like thyme", "type": "fact"}')
    await chunks.store._maintenance.commit_external_edits()
    held = await chunks.get("chunk-2026-05-04-0000000a")
    assert held is not None
    assert (held.content, held.type, held.metadata.confidence) == ("Bees like thyme", "fact", 0.7)
    assert list((await chunks.recall("thyme")).source_chunks) == ["chunk-2026-05-04-0000000a"]


async def test_a_crowded_day_is_spread_over_folders(chunks: Chunks, tmp_path: Path) -> None:
    """Beyond 64 chunks a day has folders, so that the next one costs as little; all are found the same."""
    async with anyio.create_task_group() as group:
        for number in range(64):
            group.start_soon(chunks.keep, f"bean {number}")
    last = await chunks.keep("apples")
    day = tmp_path / "memory/blocks/main/chunks/2026-05-04"
    held = await chunks.get(last)
    assert held is not None
    assert (tmp_path / "memory" / held.path).parent == day / last[17] / last[18]
    assert len([file for file in day.iterdir() if file.is_file()]) == 64
    assert len(await chunks.ids(limit=1_000)) == 65
    await chunks.delete(last)
    await chunks.restore(last)
    assert await chunks.get(last) is not None


async def test_old_and_expired_chunks_are_pruned(chunks: Chunks) -> None:
    """RLM-F21, F22: chunks neither made nor used within the limit are removed; a dry run only reports; recently used
    ones stay."""
    old = await chunks.keep("old apples")
    used = await chunks.keep("used pears", conversation="c2")
    private = await chunks.keep("old plums", layer="project_agent")
    ends = await chunks.keep("ends soon", expires_at=chunks.time + timedelta(days=1))
    chunks.later(days=80)
    await chunks.get(used)
    chunks.later(days=20)
    fresh = await chunks.keep("fresh", conversation="c3")
    dry = await chunks.writer.prune(PruneChunks(actor="owner", block="main", days=90, dry_run=True), Scope())
    assert set(dry.chunk_ids) == {old, private, ends}
    assert set(await chunks.ids()) == {old, used, private, fresh}
    await chunks.writer.prune(PruneChunks(actor="owner", block="main"), Scope())
    assert set(await chunks.ids()) == {old, used, private, fresh}
    await chunks.writer.prune(PruneChunks(actor="owner", block="main", days=90), Scope())
    assert set(await chunks.ids()) == {used, fresh}
    assert set(await chunks.ids(archived=True)) >= {old, private}


async def test_chunks_beyond_the_retention_days_are_pruned_automatically(chunks: Chunks) -> None:
    """RLM-F21: each block by its own policy; a block whose policy is broken is left alone."""
    for block, policy in (
        ("main", "[memory]\nretention_days = 90\n"),
        ("garden", ""),
        ("shed", "[memory]\nretention_days = -1\n"),
    ):
        change = Change({f"blocks/{block}/block.toml": policy.encode()}, actor="owner", reason="")
        await chunks.store.change(change)
    main = await chunks.keep("old apples")
    garden = await chunks.keep("old pears", block="garden")
    chunks.later(days=100)
    await chunks.writer.prune_all()
    assert await chunks.get(main) is None
    assert await chunks.get(main, archived=True) is not None
    assert await chunks.get(garden, block="garden") is not None
