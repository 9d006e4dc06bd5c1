"""``remembered``: the questions of ``recall``, asked of chunks: every turn of a dialogue is kept as one.

Chunks have no neighbours, so less is found than among turns. What shows is what meaning adds to words.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from benchmarks.figures import progress
from benchmarks.memory.bench import Bench, BenchRow
from benchmarks.memory.recall import LOCAL, WORDS, embedded, messages
from trunkline.contracts.memory.chunk import ChunkFile, ChunkMetadata
from trunkline.contracts.memory.chunk_files import chunk_path, encode_chunk
from trunkline.contracts.memory.chunks import Recall
from trunkline.contracts.memory.embedder import Embedder
from trunkline.contracts.memory.store import Change
from trunkline.workers.memory.chunks.block_policies import BlockPolicies
from trunkline.workers.memory.chunks.reader import ChunkReader
from trunkline_embedder.static import StaticEmbedder
from trunkline_git_store.store import GitMemoryStore


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """Without an embedder, then with the local one."""
    files = sorted(bench.data.glob("*recall*.json"))
    if not files:
        yield BenchRow("recall of chunks", f"no *recall*.json in {bench.data} (see --data)")
    for file in files:
        entries = [one for one in msgspec.json.decode(file.read_bytes()) if "sessions" in one]
        for way, embedder in ((WORDS, None), (LOCAL, StaticEmbedder())):
            found = await _recalled(bench, entries, embedder)
            shares = ", ".join(f"{share:.1%} in the top {k}" for k, share in found.items())
            yield BenchRow(f"recall of chunks, {file.stem}, {way}", shares)


async def _recalled(bench: Bench, entries: Sequence[Any], embedder: Embedder | None) -> dict[int, float]:
    """The average recall over all questions, for each k."""
    shares: dict[int, list[float]] = {5: [], 10: []}
    for entry in entries:
        name = str(entry["conversation"])
        where = f"{name}-{'words' if embedder is None else embedder.name}"
        async with bench.store(where, embedder=embedder) as store:
            turns = await _bring(store, name, entry)
            await embedded(store)
            progress(f"{name}: {len(entry['questions'])} questions")
            reader = ChunkReader(store.chunk_index(store), BlockPolicies(store, "main"))
            for question in entry["questions"]:
                request = Recall(query=question["question"], actor="agent", block="main", max_results=10)
                if evidence := set(question["evidence"]):
                    ids = [turns[chunk] for chunk in (await reader.recall(request)).source_chunks]
                    for k, into in shares.items():
                        into.append(len(evidence & set(ids[:k])) / len(evidence))
    return {k: sum(found) / max(len(found), 1) for k, found in shares.items()}


async def _bring(store: GitMemoryStore, name: str, entry: Mapping[str, Any]) -> dict[str, str]:
    """Keep every turn as a chunk; which turn each chunk is."""
    files: dict[str, bytes | None] = {}
    turns: dict[str, str] = {}
    for number, message in enumerate(messages(entry["sessions"])):
        at = message.created_at
        chunk = f"chunk-{at:%Y-%m-%d}-{number:08x}"
        known = ChunkMetadata(created_at=at, modified_at=at, conversation_id=name)
        text = f"{message.name}: {message.content}"
        held = ChunkFile(id=chunk, content=text, tokens=len(text) // 4, type="note", metadata=known)
        files[chunk_path("blocks/main", chunk, crowded=False)] = encode_chunk(held)
        turns[chunk] = message.id
    await store.change(Change(files, actor="benchmark", reason="Bring turns"))
    return turns
