"""``python -m benchmarks.approvals``: from a person's yes to the resumed turn, while a hundred others wait.

Each worker is a process of its own. A click is a decision through the gateway; it is over when the feed says that the
turn goes on (*resumed*), and when it has the result of the call that was allowed (*ran*). The number of those that wait
is kept, by a new question for each that is answered.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from time import perf_counter

import anyio

from benchmarks import machine
from benchmarks.figures import milliseconds, percentile, progress, table
from trunkline.messages.approvals import Approval
from trunkline.messages.gateway import MessageAccepted
from trunkline.messages.turn import ApprovalSettled, ToolEnded
from trunkline.testing.processes import ProcessPlatform, process_platform
from trunkline.testing.scripted_provider import provider_process

PATIENCE = 120.0
PROMISED = 0.3
"""Seconds from click to resume that 95 of 100 people may wait at most (issue 5)."""

Figures = Mapping[str, list[float]]


async def measure(provider: str, pending: int, clicks: int) -> Figures:
    """Seconds of each click, by what was waited for, and of each list."""
    config = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        "permissions.approvals": "some",
        "approvals.deadline": 3_600.0,
    }
    found: dict[str, list[float]] = {"list": [], "resumed": [], "ran": []}
    with tempfile.TemporaryDirectory(prefix="trunkline-") as folder:
        workers = ("gateway", "monitor", "tools", "memory")
        async with process_platform(Path(folder), config=config, workers=workers) as running:  # type: ignore[arg-type]
            asked = {accepted.turn: accepted for accepted in [await _ask(running, n) for n in range(pending)]}
            for number in range(clicks):
                progress(f"click {number + 1} of {clicks}")
                waiting = await _waiting(running, pending)
                began = perf_counter()
                await running.gateway.waiting()
                found["list"].append(perf_counter() - began)
                resumed, ran = await _click(running, waiting[0], asked.pop(waiting[0].turn))
                found["resumed"].append(resumed)
                found["ran"].append(ran)
                more = await _ask(running, pending + number)
                asked[more.turn] = more
            progress("")
    return found


async def _ask(running: ProcessPlatform, number: int) -> MessageAccepted:
    wish = json.dumps({"path": f"{number}.md", "content": "x"})
    return await running.send(f"call:write_file {wish} ;; say:done")


async def _waiting(running: ProcessPlatform, count: int) -> tuple[Approval, ...]:
    with anyio.fail_after(PATIENCE):
        while len(found := await running.gateway.waiting()) < count:  # noqa: ASYNC110  asked over the bus
            await anyio.sleep(0.1)
    return found


async def _click(running: ProcessPlatform, asked: Approval, accepted: MessageAccepted) -> tuple[float, float]:
    """Seconds until the turn goes on, and until the call has run."""
    watch = running.gateway.watch(accepted.conversation, accepted.turn)
    resumed = 0.0
    with anyio.fail_after(PATIENCE):
        async with aclosing(watch.events()) as events, anyio.create_task_group() as tasks:
            began = perf_counter()
            tasks.start_soon(_allow, running, asked)
            async for event in events:
                if isinstance(event, ApprovalSettled):
                    resumed = perf_counter() - began
                elif isinstance(event, ToolEnded):
                    return resumed, perf_counter() - began
    raise AssertionError("the turn ended without its call")


async def _allow(running: ProcessPlatform, asked: Approval) -> None:
    await running.gateway.decide(asked.turn, asked.call, asked.call_hash, allow=True)


def report(figures: Figures, pending: int) -> str:
    """The figures as Markdown."""
    rows = [
        (name, len(seconds), *(milliseconds(percentile(seconds, share)) for share in (0.5, 0.95, 0.99)))
        for name, seconds in figures.items()
    ]
    kept = percentile(figures["resumed"], 0.95) < PROMISED
    verdict = f"Click to resume, p95 below {milliseconds(PROMISED)} ms: {'kept' if kept else 'NOT KEPT'}."
    head = (f"with {pending} pending, ms", "times", "p50", "p95", "p99")
    return f"{machine.described()}\n\n{table(head, rows)}\n\n{verdict}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.approvals",
        description=__doc__.split("\n")[0],
        epilog="Example: python -m benchmarks.approvals --pending 100 --clicks 100",
    )
    parser.add_argument("--pending", type=int, default=100, help="how many wait (100)")
    parser.add_argument("--clicks", type=int, default=100, help="how many are answered (100)")
    parser.add_argument("--json", action="store_true", help="print the seconds as JSON")
    given = parser.parse_args()
    with provider_process() as provider:
        figures = anyio.run(
            measure, provider, given.pending, given.clicks, backend_options={"use_uvloop": True}
        )
    print(json.dumps(figures) if given.json else report(figures, given.pending))


if __name__ == "__main__":
    main()
