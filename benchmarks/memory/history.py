"""``history``: the changes of one file, and who wrote its lines, in a history of 100 000 commits."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from benchmarks.figures import percentile
from benchmarks.memory.bench import Bench, BenchRow, spread, timed

COMMITS = 100_000
EVERY = 1_000
"""Every so many commits one is of the file that is looked at."""

LIMIT = 50
AIM = 0.020
PATH = "blocks/main/memory.md"


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """Make the history with ``git fast-import``, then ask about one file of it."""
    commits = bench.sized(COMMITS, least=2_000)
    async with bench.store() as store:
        version = (await store.history("", limit=1))[0].version
    _import(bench.folder / "store" / "memory", version, commits)
    async with bench.store() as store:
        (first,) = await timed(1, lambda _: store.history(PATH, limit=1))
        yield BenchRow(
            f"first indexing of {commits} commits", f"{first:.1f} s, {commits / first:.0f} commits/s"
        )
        for name, seconds in (
            ("history of one file", await timed(50, lambda _: store.history(PATH, limit=LIMIT))),
            ("history of everything", await timed(50, lambda _: store.history("", limit=LIMIT))),
        ):
            yield BenchRow(
                f"{name}, {LIMIT} of {commits} commits",
                spread(seconds),
                "p50 <= 20 ms",
                percentile(seconds, 0.5) <= AIM,
            )
        seconds = await timed(20, lambda _: store.blame(PATH))
        yield BenchRow(f"blame of {commits // EVERY} lines, {commits} commits", spread(seconds))


def _import(root: Path, start: str, commits: int) -> None:
    """Write the commits, each of a file of its own or one more line of the file that is looked at."""
    command = ["git", "-c", "safe.directory=*", "-C", str(root), "fast-import", "--quiet", "--force"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for piece in _stream(start, commits):
            process.stdin.write(piece)
        process.stdin.close()
        if process.wait() != 0:
            raise RuntimeError("git fast-import failed; is git installed?")
    subprocess.run(["git", "-c", "safe.directory=*", "-C", str(root), "reset", "-q", "--hard"], check=True)


def _stream(start: str, commits: int) -> Iterator[bytes]:
    lines = b""
    for number in range(commits):
        path, text = f"notes/{number % 100}/{number % 5_000}.md", f"note {number}\n".encode() * 5
        if number % EVERY == 0:
            lines += f"line of commit {number}\n".encode()
            path, text = PATH, lines
        message = (
            f"Write {path}\n\nActor: agent\nConversation: conv_{number % 500}\nTurn: turn_{number}\n".encode()
        )
        yield b"commit refs/heads/main\ncommitter agent <agent@localhost> %d +0000\n" % (
            1_700_000_000 + number
        )
        yield b"data %d\n%s\n" % (len(message), message)
        if number == 0:
            yield b"from %s\n" % start.encode()
        yield b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(text), text)
