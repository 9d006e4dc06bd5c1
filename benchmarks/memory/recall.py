"""``recall``: questions about long dialogues and about texts, and whether what holds the answer is found.

Recall@k is the share of a question's evidence among the first k hits, averaged over questions. The data is a JSON list
of dialogues: ``{conversation, sessions: [{date, turns: [{id, speaker, text}]}], questions: [{question, evidence}]}``;
an entry with ``documents: [{id, text}]`` in place of sessions holds texts, one chunk of memory each.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import msgspec

from benchmarks.figures import progress
from benchmarks.memory import docstrings
from benchmarks.memory.bench import Bench, Row
from trunkline.abc.embedders import Embedder
from trunkline.abc.memory import Change
from trunkline.memory.store import GitMemoryStore
from trunkline.messages.conversation import AppendConversation, Message
from trunkline.messages.memory import SearchMemory
from trunkline_embedder.static import StaticEmbedder

WORDS, LOCAL = "no embedder", "local embedder"
AIMS = {WORDS: {5: 0.68, 10: 0.78}, LOCAL: {5: 0.72, 10: 0.82}}

WRITTEN_DATE = "%I:%M %p on %d %B, %Y"
SECONDS_A_TURN = 30.0


async def measure(bench: Bench) -> AsyncIterator[Row]:
    """Without an embedder, then with the local one: dialogues where there are any, and technical texts."""
    files = sorted(bench.data.glob("*recall*.json"))
    if not files:
        yield Row("recall", f"no *recall*.json in {bench.data} (see --data)")
    for file in files:
        async for row in _both(bench, file.stem, msgspec.json.decode(file.read_bytes()), AIMS):
            yield row
    async for row in _both(bench, "docstrings", [docstrings.entry()], {}):
        yield row


async def _both(
    bench: Bench, what: str, entries: Sequence[Any], aims: Mapping[str, Mapping[int, float]]
) -> AsyncIterator[Row]:
    for way, embedder in ((WORDS, None), (LOCAL, StaticEmbedder())):
        found = await _recalled(bench, entries, embedder)
        aimed = aims.get(way, {})
        yield Row(
            f"recall, {what}, {way}",
            ", ".join(f"{share:.1%} in the top {k}" for k, share in found.items()),
            ", ".join(f">= {aim:.0%} @{k}" for k, aim in aimed.items()),
            all(found[k] >= aim for k, aim in aimed.items()) if aimed else None,
        )


async def _recalled(bench: Bench, entries: Sequence[Any], embedder: Embedder | None) -> dict[int, float]:
    """The average recall over all questions, for each k."""
    shares: dict[int, list[float]] = {5: [], 10: []}
    for entry in entries:
        name = str(entry["conversation"])
        where = f"{name}-{'words' if embedder is None else embedder.name}"
        async with bench.store(where, embedder=embedder) as store:
            await _bring(store, name, entry)
            await embedded(store)
            progress(f"{name}: {len(entry['questions'])} questions")
            for question in entry["questions"]:
                if evidence := set(question["evidence"]):
                    ids = await _found(store, name, question["question"])
                    for k, into in shares.items():
                        into.append(len(evidence & set(ids[:k])) / len(evidence))
    return {k: sum(found) / max(len(found), 1) for k, found in shares.items()}


async def _bring(store: GitMemoryStore, name: str, entry: Mapping[str, Any]) -> None:
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
        tasks.start_soon(store.tend)
        await store.search(SearchMemory(query="anything"))
        while (stats := (await store.index_stats()).vectors) is not None and stats.missing:  # noqa: ASYNC110  a store tells it to whoever asks
            await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()


async def _found(store: GitMemoryStore, name: str, question: str) -> list[str]:
    hits = await store.search(SearchMemory(query=question, limit=10, kinds=("turn", "document")))
    return [hit.id or hit.path.removeprefix("documents/").removesuffix(".md") for hit in hits]
