"""``python -m benchmarks.agents``: the cost of a child turn, a task that an agent gives to another, over a plain turn.

Three turns alternate, on one platform with a process per worker: a plain one, one with a call of a tool that
only tells the time, and one with a call of ``agent_run`` whose agent answers as the plain one does. The third minus the
second is the child. Its parts are told by the times at which the server stored the records of the journal.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import median
from time import perf_counter

import anyio

from benchmarks import machine
from benchmarks.figures import milliseconds, percentile, progress, table
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.journal_messages import (
    AgentReportRecorded,
    JournalEntry,
    ToolFinished,
    ToolPlanned,
    TurnFinished,
    TurnStarted,
)
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.testing.scripted_provider import provider_process

AIM = 1.5
"""Plain turns that a child turn may cost at most (issue 16)."""

ANSWER = "say:ok"
TURNS = {
    "plain": ANSWER,
    "with a call": f"call:get_current_time {{}} ;; {ANSWER}",
    "with a child": f"call:agent_run {json.dumps({'task': ANSWER})} ;; {ANSWER}",
}
PARTS = (
    "until the child begins",
    "the child's turn",
    "until its parent has the result",
    "until the call ends",
)
WARM = 3

Seconds = dict[str, list[float]]


async def measure(provider: str, turns: int) -> Mapping[str, Seconds]:
    """Return the seconds of each turn, of the processor for each turn, and of each part of the children."""
    config = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
    }
    wall: Seconds = {name: [] for name in TURNS}
    cpu: Seconds = {name: [] for name in TURNS}
    parents: list[MessageAccepted] = []
    async with process_platform(
        config=config, workers=("gateway", "monitor", "tools", "memory"), timeout=120.0
    ) as running:
        pids = [process.pid for process in running.processes.values()] + [running.server.pid]
        for number in range(-WARM, turns):
            progress(f"turn {max(0, number + 1)} of {turns}")
            for name, program in TURNS.items():
                used, began = _used(pids), perf_counter()
                answer = await running.say(program)
                seconds = perf_counter() - began
                if answer.ended.code is not None:
                    raise RuntimeError(f"A turn {name} ended with {answer.ended.code}.")
                if number >= 0:
                    wall[name].append(seconds)
                    cpu[name].append(_used(pids) - used)
                    parents += [answer.accepted] if name == "with a child" else []
        parts = await _parts(running, parents)
    progress("")
    return {"wall": wall, "cpu": cpu, "parts": parts}


def _used(pids: Sequence[int]) -> float:
    return sum(map(machine.cpu_seconds, pids))


async def _parts(running: ProcessPlatform, parents: Sequence[MessageAccepted]) -> Seconds:
    """Return the seconds of each part of each child."""
    found: Seconds = {name: [] for name in PARTS}
    for accepted in parents:
        (task,) = (await running.gateway.agents(conversation=accepted.conversation)).tasks
        above, below = await _times(running, accepted.turn), await _times(running, task.id)
        moments = (
            above[ToolPlanned], below[TurnStarted], below[TurnFinished], above[AgentReportRecorded],
            above[ToolFinished],
        )  # fmt: skip
        for name, begin, end in zip(PARTS, moments, moments[1:], strict=False):
            found[name].append((end - begin).total_seconds())
    return found


async def _times(running: ProcessPlatform, turn: str) -> dict[type[JournalEntry], datetime]:
    """Return when the first entry of each kind of a turn was stored."""
    times: dict[type[JournalEntry], datetime] = {}
    async for stored in running.bus.history(JOURNAL, turn=turn):
        for entry in stored.data.entries:
            times.setdefault(type(entry), stored.time)
    return times


def ratio(seconds: Mapping[str, Sequence[float]]) -> float:
    """Return how many plain turns a child costs: the median of the differences, over that of the plain turns."""
    pairs = zip(seconds["with a child"], seconds["with a call"], strict=True)
    return median(child - call for child, call in pairs) / median(seconds["plain"])


def report(found: Mapping[str, Seconds]) -> str:
    """Return the figures as Markdown."""
    wall, cpu, parts = found["wall"], found["cpu"], found["parts"]
    rows = [
        (
            name,
            *(milliseconds(percentile(wall[name], share)) for share in (0.5, 0.95)),
            milliseconds(median(cpu[name])),
        )
        for name in TURNS
    ]
    rows.append(("a child, in plain turns", f"{ratio(wall):.2f}", "", f"{ratio(cpu):.2f}"))
    part_rows = [
        (name, *(milliseconds(percentile(parts[name], share)) for share in (0.5, 0.95))) for name in PARTS
    ]
    verdict = "met" if ratio(wall) <= AIM else "missed"
    return "\n\n".join(
        [
            machine.describe_machine(),
            table(("turn", "ms: p50", "p95", "processor, ms"), rows),
            table(("part of a child", "ms: p50", "p95"), part_rows),
            f"A child costs {AIM:g} plain turns at most: {verdict}.",
        ]
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agents", description=__doc__.split("\n\n")[0])
    parser.add_argument("--turns", type=int, default=50, help="turns of each kind (50)")
    parser.add_argument("--json", action="store_true", help="print the seconds as JSON")
    chosen = parser.parse_args()
    with provider_process() as provider:
        found = anyio.run(measure, provider, chosen.turns, backend_options={"use_uvloop": True})
    if chosen.json:
        ratios = {"wall": ratio(found["wall"]), "cpu": ratio(found["cpu"])}
        print(json.dumps({**found, "ratio": ratios}))
    else:
        print(report(found))


if __name__ == "__main__":
    main()
