"""``size``: what 50 000 writes take on the disk after packing, beside the text that was written."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random
from time import perf_counter

import anyio

from benchmarks.memory.bench import Bench, BenchRow
from trunkline.contracts.memory.store import Change, StoreContext
from trunkline_git_store.store import GitMemoryStore

WRITES = 50_000
WRITERS = 16
PACK_EVERY = 500
"""After so many writes it is looked whether packing is due, as time would have it."""

AIM = 2.0
MEGABYTE = 1024 * 1024


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """Texts of words as people write them: one write a file, and the same files edited again and again."""
    writes = bench.sized(WRITES, least=500)
    for name, files in (
        ("a file each", writes),
        ("of 500 files, edited again and again", min(500, writes // 4)),
    ):
        folder = bench.folder / name.split(",")[0].replace(" ", "-")
        store = GitMemoryStore()
        await store.open(StoreContext(folder / "memory", folder / "cache", fsync=False))
        began = perf_counter()
        written = await _write(store, writes, files)
        await store.pack(now=True)
        seconds = perf_counter() - began
        await store.aclose()
        kept = _size(folder / "memory" / ".git" / "objects")
        yield BenchRow(
            f"{writes} writes, {name}",
            f"{written / MEGABYTE:.1f} MB of text, {kept / MEGABYTE:.1f} MB of history ({kept / written:.2f} x),"
            f" {seconds:.0f} s",
            "<= 2 x",
            kept <= AIM * written,
        )


async def _write(store: GitMemoryStore, writes: int, files: int) -> int:
    """Write with many writers; returns how many bytes of text that was."""
    texts = _texts(writes)
    total = 0

    async def writer(who: int) -> None:
        nonlocal total
        for number in range(who, writes, WRITERS):
            data = next(texts)
            total += len(data)
            path = f"notes/{number % files % 100}/{number % files}.md"
            await store.change(Change({path: data}, actor=f"agent{who % 4}", reason=""))
            if number % PACK_EVERY == 0:
                await store.pack()

    async with anyio.create_task_group() as group:
        for who in range(WRITERS):
            group.start_soon(writer, who)
    return total


def _texts(count: int) -> Iterator[bytes]:
    """Notes of some 500 letters, of words that are as frequent as in a language."""
    dice = Random(3)
    words = ["".join(dice.choices("etaoinshrdlucmfwypvbgk", k=dice.randint(2, 9))) for _ in range(8_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    for _ in range(count):
        line = " ".join(dice.choices(words, weights, k=85))
        yield f"{line}\n".encode()


def _size(folder: Path) -> int:
    """What the files below a folder take on the disk, in whole blocks."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())
