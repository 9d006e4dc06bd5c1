"""``python -m benchmarks.memory``: what writes, appends and searches cost, at the store and over the bus."""

import argparse
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

import anyio

from benchmarks.figures import milliseconds, percentile, table
from trunkline.abc.memory import Change
from trunkline.memory.store import GitMemoryStore
from trunkline.messages.conversation import AppendConversation, Message
from trunkline.messages.memory import SearchMemory, WriteMemory
from trunkline.subjects import MEMORY_WRITE
from trunkline.testing.platform import platform

WRITERS = 16
NOTE = "A note of some length. " * 20

Write = Callable[[str, str], Awaitable[object]]
Row = tuple[str, str, str, str]


async def timed(times: int, job: Callable[[int], Awaitable[object]]) -> list[float]:
    """The seconds of each of ``times`` runs, one after the other."""
    seconds = []
    for number in range(times):
        began = perf_counter()
        await job(number)
        seconds.append(perf_counter() - began)
    return seconds


def row(name: str, seconds: list[float], rate: str = "") -> Row:
    """A line of the table."""
    return name, milliseconds(percentile(seconds, 0.5)), milliseconds(percentile(seconds, 0.99)), rate


async def writes(where: str, write: Write, times: int) -> AsyncIterator[Row]:
    """One writer, then many at once with one actor, then with an actor each."""
    yield row(
        f"write, {where}", await timed(times, lambda number: write(f"s/{number % 10}/{number}.md", "agent"))
    )
    for name, actors in (("one actor", 1), ("an actor each", WRITERS)):
        seconds: list[float] = []

        async def writer(
            who: int, name: str = name, actors: int = actors, into: list[float] = seconds
        ) -> None:
            actor = f"agent{who % actors}"
            into += await timed(times // 4, lambda number: write(f"{name}/{who}/{number}.md", actor))

        began = perf_counter()
        async with anyio.create_task_group() as group:
            for who in range(WRITERS):
                group.start_soon(writer, who)
        rate = len(seconds) / (perf_counter() - began)
        yield row(f"{WRITERS} writers, {name}, {where}", seconds, f"{rate:.0f}/s")


async def appends(store: GitMemoryStore, length: int) -> Row:
    """Append a message to a conversation of some length."""

    def append(first: int, count: int) -> AppendConversation:
        messages = tuple(
            Message(id=f"m{number}", role="user", content=NOTE) for number in range(first, first + count)
        )
        return AppendConversation(block="main", conversation=f"c{length}", messages=messages, actor="gateway")

    await store.append_conversation(append(0, length))
    seconds = await timed(100, lambda number: store.append_conversation(append(length + number, 1)))
    return row(f"append to {length} messages", seconds)


async def searches(base: Path, notes: int) -> AsyncIterator[Row]:
    """Search many notes that somebody put there."""
    dice = random.Random(1)
    words = [f"word{number}" for number in range(5_000)]
    for number in range(notes):
        lines = (" ".join(dice.choices(words, k=12)) for _ in range(20))
        file = base / "memory" / "notes" / str(number % 50) / f"{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Note {number}\n\n" + "\n".join(lines))
    async with opened(base) as store:
        query = SearchMemory(query="word17")
        yield row(f"index {notes} notes", await timed(1, lambda _: store.search(query)))
        found = await timed(
            100, lambda number: store.search(SearchMemory(query=f"word{number} word{number + 7}"))
        )
        yield row(f"search {notes} notes, two words", found)


@asynccontextmanager
async def opened(base: Path) -> AsyncIterator[GitMemoryStore]:
    """A store of its own."""
    store = GitMemoryStore()
    await store.open(base / "memory", base / "cache")
    yield store
    await store.aclose()


async def measure(base: Path, times: int, notes: int) -> list[Row]:
    """All figures."""
    rows: list[Row] = []
    async with opened(base / "store") as store:

        async def write(path: str, actor: str) -> object:
            return await store.change(Change({path: NOTE.encode()}, actor=actor, reason=""))

        rows += [one async for one in writes("store", write, times)]
        rows += [await appends(store, length) for length in (10, 1_000)]
    async with platform(base / "home", workers=("memory",)) as running:

        async def call(path: str, actor: str) -> object:
            return await running.bus.call(MEMORY_WRITE, WriteMemory(path=path, content=NOTE, actor=actor))

        rows += [one async for one in writes("bus", call, times)]
    rows += [one async for one in searches(base / "notes", notes)]
    return rows


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--writes", type=int, default=400, help="Writes in a row; many writers make a quarter each."
    )
    parser.add_argument("--notes", type=int, default=5_000, help="Notes to search.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        rows = anyio.run(
            measure, Path(folder), options.writes, options.notes, backend_options={"use_uvloop": True}
        )
    print(table(("what", "p50 ms", "p99 ms", "rate"), rows))


if __name__ == "__main__":
    main()
