"""``writes``: acknowledged writes at the store and over the bus, one writer and many at once."""

from collections.abc import AsyncIterator, Awaitable, Callable
from time import perf_counter

import anyio

from benchmarks.figures import percentile
from benchmarks.memory.bench import NOTE, Bench, BenchRow, spread, timed
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.store import Change
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.testing.platform import platform

WRITERS = 16
RATE = 1_500
MEDIAN = 0.015

Write = Callable[[str, str], Awaitable[object]]


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """At the store, then over the bus."""
    async with bench.store() as store:

        async def write(path: str, actor: str) -> object:
            return await store.change(Change({path: NOTE.encode()}, actor=actor, reason=""))

        async for row in _writes("store", write, bench):
            yield row
    config = {"bus.sync_interval": "always"}
    async with platform(bench.folder / "home", config=config, workers=("memory",)) as running:

        async def call(path: str, actor: str) -> object:
            return await running.bus.call(MEMORY_WRITE, WriteMemory(path=path, content=NOTE, actor=actor))

        async for row in _writes("bus", call, bench):
            yield row


async def _writes(where: str, write: Write, bench: Bench) -> AsyncIterator[BenchRow]:
    """One writer, then many at once with one actor, then with an actor each."""
    seconds = await timed(bench.sized(400), lambda number: write(f"s/{number % 10}/{number}.md", "agent"))
    yield BenchRow(
        f"single write, {where}", spread(seconds), "p50 <= 15 ms", percentile(seconds, 0.5) <= MEDIAN
    )
    for name, actors in (("one actor", 1), ("an actor each", WRITERS)):
        rate, seconds = await _together(write, bench.sized(400, least=10), name, actors)
        aimed = name == "one actor"
        yield BenchRow(
            f"{WRITERS} writers, {name}, {where}",
            f"{rate:.0f}/s, {spread(seconds)}",
            f">= {RATE}/s" if aimed else "",
            rate >= RATE if aimed else None,
        )


async def _together(write: Write, times: int, name: str, actors: int) -> tuple[float, list[float]]:
    """How many a second, and how long each took, when all write at once."""
    seconds: list[float] = []

    async def writer(who: int) -> None:
        seconds.extend(
            await timed(times, lambda number: write(f"{name}/{who}/{number}.md", f"agent{who % actors}"))
        )

    began = perf_counter()
    async with anyio.create_task_group() as group:
        for who in range(WRITERS):
            group.start_soon(writer, who)
    return len(seconds) / (perf_counter() - began), seconds
