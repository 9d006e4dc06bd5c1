"""``chunks``: what making, reading, linking and recalling a chunk costs among 100 and among 100 000.

The worst case: all of one day, one conversation and one tag, so that whatever grows with any of them shows.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from statistics import median

from benchmarks.figures import milliseconds
from benchmarks.memory.bench import Bench, Row, timed
from trunkline.abc.memory import Change
from trunkline.memory.chunks.keeper import Keeper
from trunkline.memory.chunks.kinds import Kinds
from trunkline.memory.chunks.policies import Policies
from trunkline.memory.chunks.reader import Reader
from trunkline.memory.chunks.record import ChunkFile, encode, new_chunk_id, path_of
from trunkline.memory.redaction import Redaction
from trunkline.memory.store import GitMemoryStore
from trunkline.messages.chunks import ChunkMetadata, FindLinked, GetChunk, Recall, Remember
from trunkline_bus import Scope

FEW, MANY = 100, 100_000
BATCH = 2_000
AT = datetime(2026, 5, 4, 12, tzinfo=UTC)
DICE = random.Random(1)
WORDS = tuple(f"word{number}" for number in range(2_000))

RATIO = 1.5
"""Up to which two medians of one run count as the same cost: the machine's own noise."""


def text() -> str:
    """A chunk of ordinary length."""
    return " ".join(DICE.choices(WORDS, k=60))


class Keeping:
    """A keeper and a reader on a store, and the four things that are measured."""

    def __init__(self, store: GitMemoryStore) -> None:
        policies = Policies(store)
        redaction = Redaction(("api_key", "token", "password", "secret", "private_key"))
        store.rules = (redaction,)
        self.reader = Reader(store.ask, policies, lambda: AT)
        self.keeper = Keeper(store, self.reader, policies, Kinds(), redaction.text, lambda: AT)
        self.made: list[str] = []

    async def make(self, number: int) -> None:
        """Remember one."""
        wish = Remember(content=text(), actor="agent", conversation_id="c", block="main", tags=("all",))
        self.made += (await self.keeper.remember(wish, Scope())).chunk_ids

    async def read(self, number: int) -> None:
        """Read one."""
        wish = GetChunk(id=self.made[number % len(self.made)], actor="agent", block="main")
        assert (await self.reader.get(wish)).chunk is not None

    async def link(self, number: int) -> None:
        """See what one is linked to."""
        wish = FindLinked(id=self.made[number % len(self.made)], actor="agent", block="main", limit=10)
        await self.reader.linked(wish)

    async def recall(self, number: int) -> None:
        """Recall by two words."""
        wish = Recall(query=f"{WORDS[number % 2_000]} {WORDS[-1 - number]}", actor="agent", block="main")
        await self.reader.recall(wish)


async def measure(bench: Bench) -> AsyncIterator[Row]:
    """Among few, then among many."""
    few = await _among(bench, FEW)
    many = await _among(bench, bench.sized(MANY, least=FEW))
    size = f"{bench.sized(MANY, least=FEW):,}".replace(",", " ")
    for name in few:
        ratio = many[name] / few[name]
        aimed = name == "make"
        yield Row(
            f"{name} a chunk among {FEW} and among {size}",
            f"{milliseconds(few[name])} ms and {milliseconds(many[name])} ms, {ratio:.2f} times",
            "the same" if aimed else "",
            ratio <= RATIO if aimed else None,
        )


async def _among(bench: Bench, number: int) -> dict[str, float]:
    """The median seconds of each among so many."""
    name = f"chunks-{number}"
    async with bench.store(name, sync=False) as store:
        for first in range(0, number, BATCH):
            await store.change(_chunks(min(BATCH, number - first)))
        await store.pack(now=True)
    async with bench.store(name) as store:
        keeping = Keeping(store)
        jobs: dict[str, Callable[[int], Awaitable[None]]] = {
            "make": keeping.make,
            "read": keeping.read,
            "link": keeping.link,
            "recall": keeping.recall,
        }
        await keeping.make(0)
        await keeping.read(0)
        return {job: median(await timed(50, call)) for job, call in jobs.items()}


def _chunks(count: int) -> Change:
    files: dict[str, bytes | None] = {}
    for _ in range(count):
        chunk = new_chunk_id(AT)
        known = ChunkMetadata(created_at=AT, modified_at=AT, conversation_id="c")
        held = ChunkFile(id=chunk, content=text(), tokens=100, type="note", tags=("all",), metadata=known)
        files[path_of("blocks/main", chunk, crowded=True)] = encode(held)
    return Change(files, actor="agent", reason="Fill")
