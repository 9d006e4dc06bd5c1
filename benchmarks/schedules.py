"""``python -m benchmarks.schedules``: how late the messages of due schedules are, with many others armed.

Gateway and memory are processes of their own, and no monitor takes the messages: a message is late by the time from its
due time until the inbox has it on disk. ``--due`` schedules are due within one minute, ``--armed`` others much later.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from time import perf_counter

import anyio

from benchmarks import machine
from benchmarks.figures import milliseconds, percentile, progress, table
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.schedules.paths import schedule_path
from trunkline.contracts.schedules.subjects import SCHEDULE_TIMER
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.subjects import INBOX

TIMEOUT = 1_800.0
AIM = 1.0
"""Seconds that 95 of 100 messages may be late at most (issue 16)."""

BATCH = 500
SPREAD_SECONDS = 60


async def measure(armed: int, due: int) -> dict[str, object]:
    """Return the seconds by which each message was late, those of arming all schedules, and the gateway's memory."""
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        async with process_platform(Path(folder), workers=("memory", "gateway")) as running:
            began = perf_counter()
            await _write(running, {f"armed-{number}": _far() for number in range(armed)})
            await _until_armed(running, armed)
            arming = perf_counter() - began
            first = utc_now().replace(microsecond=0) + timedelta(seconds=20 + due // 50)
            times = {f"due-{n}": first + timedelta(seconds=n % SPREAD_SECONDS) for n in range(due)}
            await _write(running, {name: _once(at) for name, at in times.items()})
            late = await _lateness(running, times)
            pid = running.processes["gateway"].pid
            return {"arming": arming, "late": late, "memory_mb": _resident_mb(pid)}


def _far() -> str:
    return 'instruction = "x"\ncron = "0 9 1 1 *"\n'


def _once(at: datetime) -> str:
    return f'instruction = "x"\nat = {at:%Y-%m-%dT%H:%M:%SZ}\n'


async def _write(running: ProcessPlatform, files: Mapping[str, str]) -> None:
    for names in _batches(list(files)):
        request = WriteManyMemory(
            files={schedule_path("main", name): files[name] for name in names}, actor="owner"
        )
        await running.bus.call(MEMORY_WRITE_MANY, request, timeout=120.0)


def _batches(names: list[str]) -> Iterator[list[str]]:
    rest = iter(names)
    while batch := list(islice(rest, BATCH)):
        yield batch


async def _until_armed(running: ProcessPlatform, count: int) -> None:
    with anyio.fail_after(TIMEOUT):
        while True:
            found = len([stored.seq async for stored in running.bus.history(SCHEDULE_TIMER)])
            progress(f"{found} of {count} are armed")
            if found >= count:
                return progress("")
            await anyio.sleep(1.0)


async def _lateness(running: ProcessPlatform, times: Mapping[str, datetime]) -> list[float]:
    """Wait for the messages, and return by how many seconds each was late."""
    late: dict[str, float] = {}
    with anyio.fail_after(TIMEOUT):
        while len(late) < len(times):
            await anyio.sleep(1.0)
            async for stored in running.bus.history(INBOX):
                if isinstance(stored.data, TurnRequested):
                    name = str(stored.data.instructions).split("'")[1]
                    late[name] = (stored.time - times[name]).total_seconds()
            progress(f"{len(late)} of {len(times)} have arrived")
    progress("")
    return sorted(late.values())


def _resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def report(found: Mapping[str, object], armed: int, due: int) -> str:
    """Return the figures as Markdown."""
    late = found["late"]
    assert isinstance(late, list)
    shares = [percentile(late, share) for share in (0.5, 0.95, 0.99)]
    row = (due, *map(milliseconds, shares), f"{found['memory_mb']:.0f}", f"{found['arming']:.1f}")
    head = (f"due in a minute, {armed} armed", "late by, ms: p50", "p95", "p99", "gateway, MB", "arming, s")
    verdict = f"Late by p95 of {milliseconds(AIM)} ms at most: {'met' if percentile(late, 0.95) <= AIM else 'missed'}."
    return f"{machine.describe_machine()}\n\n{table(head, [row])}\n\n{verdict}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.schedules",
        description=__doc__.split("\n")[0],
        epilog="Example: python -m benchmarks.schedules --armed 10000 --due 1000",
    )
    parser.add_argument("--armed", type=int, default=10_000, help="how many are armed for later (10000)")
    parser.add_argument("--due", type=int, default=1_000, help="how many are due within a minute (1000)")
    parser.add_argument("--json", action="store_true", help="print the seconds as JSON")
    chosen = parser.parse_args()
    found = anyio.run(measure, chosen.armed, chosen.due, backend_options={"use_uvloop": True})
    print(json.dumps(found) if chosen.json else report(found, chosen.armed, chosen.due))


if __name__ == "__main__":
    main()
