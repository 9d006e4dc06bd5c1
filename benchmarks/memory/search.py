"""``search``: words among many notes that somebody put there."""

import random
from collections.abc import AsyncIterator

from benchmarks.memory.bench import Bench, Row, spread, timed
from trunkline.messages.memory import SearchMemory

NOTES = 5_000


async def measure(bench: Bench) -> AsyncIterator[Row]:
    """Index the notes, then search them."""
    notes = bench.sized(NOTES, least=50)
    _put(bench, notes)
    async with bench.store() as store:
        first = await timed(1, lambda _: store.search(SearchMemory(query="word17")))
        yield Row(f"index {notes} notes", f"{first[0]:.1f} s")
        seconds = await timed(
            100, lambda number: store.search(SearchMemory(query=f"word{number} word{number + 7}"))
        )
        yield Row(f"search {notes} notes, two words", spread(seconds))


def _put(bench: Bench, notes: int) -> None:
    dice = random.Random(1)
    words = [f"word{number}" for number in range(5_000)]
    for number in range(notes):
        lines = (" ".join(dice.choices(words, k=12)) for _ in range(20))
        file = bench.folder / "store" / "memory" / "notes" / str(number % 50) / f"{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Note {number}\n\n" + "\n".join(lines))
