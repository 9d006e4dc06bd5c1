"""``chunks``: what making, reading, linking and recalling a chunk costs among 100 and among 100 000.

The worst case: all of one day, one conversation and one tag, so that whatever grows with any of them shows.
"""

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from statistics import median

from benchmarks.figures import milliseconds
from benchmarks.memory.bench import Bench, BenchRow, timed
from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.memory.chunk import ChunkFile, ChunkMetadata
from trunkline.contracts.memory.chunk_files import CROWDED, chunk_path, encode_chunk, new_chunk_id
from trunkline.contracts.memory.chunks import FindLinked, GetChunk, Recall, Remember
from trunkline.contracts.memory.store import Change
from trunkline.workers.memory.change_rules import RedactionRule
from trunkline.workers.memory.chunks.block_policies import BlockPolicies
from trunkline.workers.memory.chunks.chunk_types import TypeRegistry
from trunkline.workers.memory.chunks.reader import ChunkReader
from trunkline.workers.memory.chunks.writer import ChunkWriter
from trunkline_bus import Scope
from trunkline_git_store.store import GitMemoryStore

FEW, MANY = 100, 100_000
TIMES = 60
BATCH = 2_000
AT = datetime(2026, 5, 4, 12, tzinfo=UTC)
DICE = random.Random(1)
WORDS = tuple(f"word{number}" for number in range(2_000))

RATIO = 1.5
"""Up to which two medians of one run count as the same cost: the machine's own noise."""


def text() -> str:
    """A chunk of ordinary length."""
    return " ".join(DICE.choices(WORDS, k=60))


class ChunkWorkload:
    """A keeper and a reader on a store, and the four things that are measured."""

    def __init__(self, store: GitMemoryStore) -> None:
        policies = BlockPolicies(store, "main")
        redaction = RedactionRule(Redactor())
        self.reader = ChunkReader(store.chunk_index(store), policies, lambda: AT)
        self.writer = ChunkWriter(store, self.reader, policies, TypeRegistry(), redaction.redact, lambda: AT)
        self.made: list[str] = []

    async def make(self, number: int) -> None:
        """Remember one."""
        request = Remember(content=text(), actor="agent", conversation_id="c", block="main", tags=("all",))
        self.made += (await self.writer.remember(request, Scope())).chunk_ids

    async def read(self, number: int) -> None:
        """Read one."""
        request = GetChunk(id=self.made[number % len(self.made)], actor="agent", block="main")
        assert (await self.reader.get(request)).chunk is not None

    async def link(self, number: int) -> None:
        """See what one is linked to."""
        request = FindLinked(id=self.made[number % len(self.made)], actor="agent", block="main", limit=10)
        await self.reader.linked(request)

    async def recall(self, number: int) -> None:
        """Recall by two words."""
        request = Recall(query=f"{WORDS[number % 2_000]} {WORDS[-1 - number]}", actor="agent", block="main")
        await self.reader.recall(request)


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """Among few and among many, in turns, so that whatever else the machine does slows both."""
    count = bench.sized(MANY, least=FEW)
    await _fill(bench, "few", FEW)
    await _fill(bench, "many", count)
    async with bench.store("few") as small, bench.store("many") as large:
        few, many = ChunkWorkload(small), ChunkWorkload(large)
        for one in (few, many):
            await one.make(0)
            await one.read(0)
        for name in ("make", "read", "link", "recall"):
            yield await _row(name, few, many, f"{count:,}".replace(",", " "))


async def _row(name: str, few: ChunkWorkload, many: ChunkWorkload, count: str) -> BenchRow:
    """The medians of one thing, and how many times as long it takes among many."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(TIMES):
        for one, taken in zip((few, many), seconds, strict=True):
            taken += await timed(1, lambda _, one=one, number=number: getattr(one, name)(number))  # type: ignore[misc]
    small, large = map(median, seconds)
    aimed = name == "make"
    return BenchRow(
        f"{name} a chunk among {FEW} and among {count}",
        f"p50 {milliseconds(small)} ms and {milliseconds(large)} ms, {large / small:.2f} times",
        "the same" if aimed else "",
        large / small <= RATIO if aimed else None,
    )


async def _fill(bench: Bench, name: str, count: int) -> None:
    async with bench.store(name, sync=False) as store:
        for first in range(0, count, BATCH):
            await store.change(_chunks(first, min(BATCH, count - first)))
        await store.pack(now=True)


def _chunks(first: int, count: int) -> Change:
    files: dict[str, bytes | None] = {}
    for number in range(first, first + count):
        chunk = new_chunk_id(AT)
        known = ChunkMetadata(created_at=AT, modified_at=AT, conversation_id="c")
        held = ChunkFile(id=chunk, content=text(), tokens=100, type="note", tags=("all",), metadata=known)
        files[chunk_path("blocks/main", chunk, crowded=number >= CROWDED)] = encode_chunk(held)
    return Change(files, actor="agent", reason="Fill")
