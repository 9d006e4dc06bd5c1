"""Choose figures, measure each in a folder of its own, print one table."""

import argparse
import importlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from benchmarks.figures import progress, table
from benchmarks.memory import __doc__ as purpose
from benchmarks.memory.bench import DATA, Bench, BenchRow

LARGE = ("million",)
"""What is measured only when it is named."""

FIGURES = (
    "writes",
    "history",
    "size",
    "appends",
    "backup",
    "search",
    "recall",
    "retrieval",
    "chunk_recall",
    "reindex",
    "nearest",
    "documents",
    "chunks",
    "learning",
)
"""The modules of this package that measure, in the order of the table."""


async def run(figures: Sequence[str], bench: Callable[[str], Bench]) -> list[BenchRow]:
    """All rows of some figures."""
    rows: list[BenchRow] = []
    for name in figures:
        module = importlib.import_module(f"benchmarks.memory.{name}")
        async for row in module.measure(bench(name)):
            progress(f"{row.what}: {row.measured}")
            rows.append(row)
    progress("")
    return rows


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=purpose)
    parser.add_argument(
        "figures",
        nargs="*",
        metavar="FIGURE",
        help=f"Of: {', '.join(FIGURES)} (none: all of them), {', '.join(LARGE)}.",
    )
    parser.add_argument("--scale", type=float, default=1.0, help="How large, 1.0 being the size of the aims.")
    parser.add_argument("--data", type=Path, default=DATA, help="Where recall finds its dialogues.")
    options = parser.parse_args()
    unknown = set(options.figures) - {*FIGURES, *LARGE}
    if unknown:
        parser.error(
            f"no such figure: {', '.join(sorted(unknown))}. There are: {', '.join((*FIGURES, *LARGE))}."
        )
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        rows = anyio.run(
            run,
            options.figures or FIGURES,
            lambda name: Bench(Path(folder) / name, options.scale, options.data),
            backend_options={"use_uvloop": True},
        )
    print(table(("what", "measured", "aim", "met"), [row.cells() for row in rows]))


if __name__ == "__main__":
    main()
