"""``python -m benchmarks.dispatch``: what it takes to call a native tool over the bus, beside one that does nothing.

The tools worker and memory are processes of their own. A call is over when its outcome is here, from the moment it is
published; the tool returns at once. *asked* asks the same worker whether it lives: the way there and back, and no
dispatch. *read* is recorded after it was answered, *write* is recorded before and after, on the disk. One call at a
time, the ways in turn, so what others do on the machine meets all alike. The processor's seconds are the worker's own.
"""

import argparse
import json
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

import anyio
import psutil

from benchmarks import machine
from benchmarks.figures import milliseconds, percentile, progress, table
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.tools.messages import CallTool, CheckLiveness, ToolOutcome
from trunkline.contracts.tools.subjects import CALL_TOOL, CHECK_LIVENESS
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline_bus import Bus, new_id

AIMED = 0.002
"""Seconds that a call of a native tool may take at most, in the middle (issue 5)."""

TOOLS = '''
import trunkline

@trunkline.tool(effect="read")
async def look(text: str) -> str:
    """Look."""
    return text

@trunkline.tool(effect="write")
async def change(text: str) -> str:
    """Change nothing."""
    return text

@trunkline.hookimpl
def trunkline_tools():
    return [look, change]
'''

Once = Callable[[], Awaitable[None]]


async def measure(rounds: int, warm: int) -> dict[str, dict[str, float]]:
    """Percentiles of each way, in seconds, and what of the worker's processor one takes."""
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        async with process_platform(
            Path(folder), plugins={"bench": TOOLS}, workers=("memory", "tools")
        ) as running:
            worker = psutil.Process(running.processes["tools"].pid)
            ways = await _ways(running)
            walls: dict[str, list[float]] = {name: [] for name in ways}
            cpus = dict.fromkeys(ways, 0.0)
            for number in range(-warm, rounds):
                if number % 100 == 0:
                    progress(f"round {number} of {rounds}")
                for name, once in ways.items():
                    begun = perf_counter()
                    await once()
                    if number >= 0:
                        walls[name].append(perf_counter() - begun)
            for name, once in ways.items():
                before = _cpu(worker)
                for _ in range(rounds):
                    await once()
                cpus[name] = (_cpu(worker) - before) / rounds
            progress("")
    return {
        name: {
            "p50": percentile(wall, 0.5),
            "p95": percentile(wall, 0.95),
            "best": min(wall),
            "cpu": cpus[name],
        }
        for name, wall in walls.items()
    }


async def _ways(running: ProcessPlatform) -> dict[str, Once]:
    while not (worker := await _tools_worker(running.bus)):  # noqa: ASYNC110 - ready a moment before its beat
        await anyio.sleep(0.05)

    async def asked() -> None:
        await running.bus.call(CHECK_LIVENESS, CheckLiveness(), worker=worker)

    return {"asked": asked, "read": _call(running.bus, "look"), "write": _call(running.bus, "change")}


async def _tools_worker(bus: Bus) -> str:
    entries = await bus.kv(WORKER_BUCKET).entries()
    return next((one.value.id for one in entries if one.value is not None and one.value.kind == "tools"), "")


def _call(bus: Bus, name: str) -> Once:
    async def once() -> None:
        request = CallTool(
            call=new_id("call"), name=name, arguments={"text": "hello"}, block="main", conversation="conv_1",
            turn="turn_1", actor="owner",
        )  # fmt: skip
        async with bus.call_streaming(CALL_TOOL, request, idle_timeout=10.0) as replies:
            async for reply in replies:
                if isinstance(reply, ToolOutcome):
                    assert reply.output == "hello", reply
                    return

    return once


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dispatch", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=1000, help="calls of each (1000)")
    parser.add_argument("--warm", type=int, default=200, help="calls of each before any is counted (200)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, in seconds")
    given = parser.parse_args()
    whole = machine.describe_machine()
    figures = anyio.run(measure, given.rounds, given.warm, backend_options={"use_uvloop": True})
    if given.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"{whole}\n")
    rows = [
        [name, *(milliseconds(one[key]) for key in ("best", "p50", "p95", "cpu"))]
        for name, one in figures.items()
    ]
    print(table(("call", "best ms", "p50 ms", "p95 ms", "worker's processor time, ms"), rows))
    added = figures["read"]["p50"] - figures["asked"]["p50"]
    print(f"\nDispatch of a read adds {milliseconds(added)} ms to a request and its answer.")
    verdict = "met" if figures["read"]["p50"] <= AIMED else "missed"
    print(f"Aim: a call of a native tool at p50 within {milliseconds(AIMED)} ms: {verdict}.")


if __name__ == "__main__":
    main()
