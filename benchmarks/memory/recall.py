"""``recall``: questions about long dialogues and about texts, and whether what holds the answer is found.

Recall@k is the share of a question's evidence among the first k hits, averaged over questions. The data is a JSON list
of dialogues: ``{conversation, sessions: [{date, turns: [{id, speaker, text}]}], questions: [{question, evidence}]}``;
an entry with ``documents: [{id, text}]`` in place of sessions holds texts, one chunk of memory each.

All entries of a file lie in one store, as they do in people's memories. Each question is asked as people and agents ask
it, with nothing but its words; then again with the kinds named; then as at first, when memory also holds the questions
and what an agent's search gave to them.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import msgspec

from benchmarks.figures import progress
from benchmarks.memory import docstrings
from benchmarks.memory.bench import Bench, BenchRow
from trunkline.contracts.conversations.messages import AppendConversation, Message, ToolCall
from trunkline.contracts.memory.embedder import Embedder
from trunkline.contracts.memory.search import MemoryHit, PassageKind, SearchMemory
from trunkline.contracts.memory.store import Change
from trunkline_embedder.static import StaticEmbedder
from trunkline_git_store.store import GitMemoryStore

WORDS, LOCAL = "no embedder", "local embedder"
AIMS = {WORDS: {5: 0.66, 10: 0.76}, LOCAL: {5: 0.70, 10: 0.80}}
"""Of a default search, in a store that holds three dialogues."""

PLAIN, AGAIN = "by default", "by default, asked again"
KINDS: tuple[PassageKind, ...] = ("turn", "document")
NAMED = "kinds=turn,document"

WRITTEN_DATE = "%I:%M %p on %d %B, %Y"
SECONDS_A_TURN = 30.0

Place = tuple[str, str]
"""A conversation and the id of a message; or the name of an entry and the id of a text."""

Shares = Mapping[int, float]


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """Without an embedder, then with the local one: dialogues where there are any, and technical texts."""
    files = sorted(bench.data.glob("*recall*.json"))
    if not files:
        yield BenchRow("recall", f"no *recall*.json in {bench.data} (see --data)")
    for file in files:
        async for row in _both(bench, file.stem, msgspec.json.decode(file.read_bytes()), AIMS):
            yield row
    async for row in _both(bench, "docstrings", [docstrings.entry()], {}):
        yield row


async def _both(
    bench: Bench, what: str, entries: Sequence[Any], aims: Mapping[str, Mapping[int, float]]
) -> AsyncIterator[BenchRow]:
    for way, embedder in ((WORDS, None), (LOCAL, StaticEmbedder())):
        async for how, found in _recalled(bench, what, entries, embedder):
            aimed = aims.get(way, {}) if how == PLAIN else {}
            yield BenchRow(
                f"recall, {what}, {way}, {how}",
                ", ".join(f"{share:.1%} in the top {k}" for k, share in found.items()),
                ", ".join(f">= {aim:.0%} @{k}" for k, aim in aimed.items()),
                all(found[k] >= aim for k, aim in aimed.items()) if aimed else None,
            )


async def _recalled(
    bench: Bench, what: str, entries: Sequence[Any], embedder: Embedder | None
) -> AsyncIterator[tuple[str, Shares]]:
    """The average recall over all questions, for each k, in each way of asking."""
    where = f"{what}-{'words' if embedder is None else embedder.name}"
    async with bench.store(where, sync=False, embedder=embedder) as store:
        for entry in entries:
            await _bring(store, str(entry["conversation"]), entry)
        await embedded(store)
        yield PLAIN, await _asked(store, entries, ())
        yield NAMED, await _asked(store, entries, KINDS)
        for number, (_, question, _) in enumerate(_questions(entries)):
            await _ask_as_an_agent(store, number, question)
        await embedded(store)
        yield AGAIN, await _asked(store, entries, ())


async def _asked(store: GitMemoryStore, entries: Sequence[Any], kinds: tuple[PassageKind, ...]) -> Shares:
    shares: dict[int, list[float]] = {5: [], 10: []}
    for name, question, evidence in _questions(entries):
        hits = await store.search(SearchMemory(query=question, limit=10, kinds=kinds))
        found = [_place(name, hit) for hit in hits]
        for k, into in shares.items():
            into.append(len(evidence & set(found[:k])) / len(evidence))
    return {k: sum(found) / max(len(found), 1) for k, found in shares.items()}


def _questions(entries: Sequence[Any]) -> Iterator[tuple[str, str, set[Place]]]:
    for entry in entries:
        name = str(entry["conversation"])
        for question in entry["questions"]:
            if question["evidence"]:
                yield name, question["question"], {(name, id) for id in question["evidence"]}


def _place(name: str, hit: MemoryHit) -> Place:
    if hit.kind == "document":
        return name, hit.path.removeprefix("documents/").removesuffix(".md")
    return hit.conversation, hit.id


async def _ask_as_an_agent(store: GitMemoryStore, number: int, question: str) -> None:
    """Leave in memory what an agent leaves there that searched memory for a question."""
    hits = await store.search(SearchMemory(query=question, limit=10))
    rows = [{"path": hit.path, "line": hit.line, "content": hit.content} for hit in hits]
    call, turn = ToolCall(id="call", name="memory_search", arguments={"query": question}), f"turn-{number}"
    result = msgspec.json.encode({"hits": rows}).decode()
    said = (
        Message(id="asked", turn=turn, role="user", content=question),
        Message(id="searched", turn=turn, role="assistant", content="", tool_calls=(call,)),
        Message(
            id="found",
            turn=turn,
            role="tool",
            content=result,
            tool_call_id=call.id,
            name=call.name,
            derived=True,
        ),
        Message(id="answered", turn=turn, role="assistant", content="That is all that I found."),
    )
    await store.append_conversation(
        AppendConversation(block="main", conversation=f"asked-{number}", messages=said, actor="benchmark")
    )


async def _bring(store: GitMemoryStore, name: str, entry: Mapping[str, Any]) -> None:
    progress(f"{name}: {len(entry['questions'])} questions")
    if "documents" in entry:
        files: dict[str, bytes | None] = {
            f"documents/{one['id']}.md": str(one["text"]).encode() for one in entry["documents"]
        }
        await store.change(Change(files, actor="benchmark", reason="Bring texts"))
        return
    said = tuple(messages(entry["sessions"]))
    await store.append_conversation(
        AppendConversation(block="main", conversation=name, messages=said, actor="benchmark")
    )


def messages(sessions: Sequence[Any]) -> Iterator[Message]:
    """The turns of a dialogue, with the times at which they were said."""
    for session in sessions:
        began = datetime.strptime(session["date"], WRITTEN_DATE).replace(tzinfo=UTC)
        for number, turn in enumerate(session["turns"]):
            yield Message(
                id=turn["id"],
                role="user",
                name=turn["speaker"],
                content=turn["text"],
                created_at=began + timedelta(seconds=SECONDS_A_TURN * number),
            )


async def embedded(store: GitMemoryStore) -> None:
    """Wait until everything has its vector, if there is an embedder."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run_maintenance)
        await store.search(SearchMemory(query="anything"))
        while (stats := (await store.index_stats()).vectors) is not None and stats.missing:  # noqa: ASYNC110  a store tells it to whoever asks
            await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()
