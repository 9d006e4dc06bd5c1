"""``python -m benchmarks.lanes``: a person's message while background turns have all slots, and what a background turn
waits while persons do.

Each worker is a process of its own, and there is one monitor. *preempted* is the time from the message to the record
that a background turn gave up its slot; *first text* is the time to the first text of the answer.

The second figure is the starvation: persons keep all slots busy, more of them wait at any time, and a background turn
has to get its turn nevertheless. It may wait for ``monitor.background_wait``, which is 2 seconds here, and then for the
persons before it.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

import anyio

from benchmarks import machine
from benchmarks.figures import milliseconds, percentile, progress, table
from tests.background_turns import in_background
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.turns.feed_messages import TextDelta
from trunkline.contracts.turns.journal_messages import (
    JournalEntry,
    ModelCallPlanned,
    TurnPreempted,
    TurnRecord,
)
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.testing.scripted_provider import provider_process
from trunkline_bus import ReceivedMessage

TIMEOUT = 120.0
AIM = 0.1
"""Seconds from a person's message to the preemption that 95 of 100 may take at most (issue 16)."""

WORKERS: tuple[WorkerKind, ...] = ("gateway", "monitor", "tools", "memory")
SLOTS = 4
LONG = "slow:20000:50"
WAIT_BOUND = 2.0
PERSONS = 3 * SLOTS

Figures = Mapping[str, list[float]]


class JournalListener:
    """Keeps the last entry of each turn, and the last preemption."""

    def __init__(self) -> None:
        self.last: dict[str, JournalEntry] = {}
        self.preempted_at = 0.0
        self.preempted = ""

    async def take(self, message: ReceivedMessage[TurnRecord]) -> None:
        """Note a record."""
        record = message.data
        self.last[record.turn] = record.entries[-1]
        if isinstance(record.entries[-1], TurnPreempted):
            self.preempted_at, self.preempted = perf_counter(), record.turn

    @property
    def thinking(self) -> int:
        """The number of turns whose model call runs."""
        return sum(isinstance(entry, ModelCallPlanned) for entry in self.last.values())


def config(provider: str, wait: float) -> dict[str, object]:
    """The settings of the measured platform."""
    return {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        "monitor.concurrency": SLOTS,
        "monitor.background_wait": wait,
    }


async def measure_preemption(provider: str, rounds: int) -> Figures:
    """Seconds from a person's message to the preemption and to the first text, with all slots busy."""
    found: dict[str, list[float]] = {"preempted": [], "first text": []}
    with tempfile.TemporaryDirectory(prefix="trunkline-") as folder:
        async with process_platform(
            Path(folder), config=config(provider, 3_600.0), workers=WORKERS
        ) as running:
            await running.say("say:ready")  # the first turn of a platform imports what it needs
            heard = JournalListener()
            await running.bus.subscribe(JOURNAL, heard.take, limit=1)
            await running.send(LONG)  # background turns leave one slot to people
            for _ in range(SLOTS):
                await in_background(running, LONG)
            for number in range(rounds):
                progress(f"message {number + 1} of {rounds}")
                with anyio.fail_after(TIMEOUT):
                    while heard.thinking < SLOTS:  # noqa: ASYNC110  the journal says it
                        await anyio.sleep(0.02)
                heard.preempted, began = "", perf_counter()
                found["first text"].append(await _first_text(running, began))
                assert heard.preempted
                found["preempted"].append(heard.preempted_at - began)
                # A turn that was preempted three times is not preempted again, so each round has a new one.
                await running.gateway.cancel(heard.preempted)
                await in_background(running, LONG)
            progress("")
    return found


async def _first_text(running: ProcessPlatform, began: float) -> float:
    """Send a message and read its whole answer; return the seconds to its first text."""
    first = 0.0
    accepted = await running.send("say:hello")
    with anyio.fail_after(TIMEOUT):
        async for event in running.gateway.watch(accepted.conversation, accepted.turn):
            if isinstance(event, TextDelta):
                first = first or perf_counter() - began
    return first


async def measure_starvation(provider: str, turns: int) -> Figures:
    """Seconds from the acceptance of a background turn to its first text, while persons keep all slots busy."""
    found: dict[str, list[float]] = {"background turn": []}
    with tempfile.TemporaryDirectory(prefix="trunkline-") as folder:
        settings = config(provider, WAIT_BOUND)
        async with process_platform(Path(folder), config=settings, workers=WORKERS) as running:
            await running.say("say:ready")
            async with anyio.create_task_group() as persons:
                for _ in range(PERSONS):
                    persons.start_soon(_chat, running)
                for number in range(turns):
                    progress(f"background turn {number + 1} of {turns}")
                    began = perf_counter()
                    accepted = await in_background(running, "say:done")
                    with anyio.fail_after(TIMEOUT):
                        async for event in running.gateway.watch(accepted.conversation, accepted.turn):
                            if isinstance(event, TextDelta):
                                found["background turn"].append(perf_counter() - began)
                                break
                persons.cancel_scope.cancel()
            progress("")
    return found


async def _chat(running: ProcessPlatform) -> None:
    """Write again as soon as the answer is there, until cancelled."""
    while True:
        await running.say("slow:10:20")


def report(figures: Figures) -> str:
    """The figures as Markdown."""
    rows = [
        (name, len(seconds), *(milliseconds(percentile(seconds, share)) for share in (0.5, 0.95, 1.0)))
        for name, seconds in figures.items()
    ]
    met = percentile(figures["preempted"], 0.95) <= AIM
    verdict = f"Message to preemption, p95 at most {milliseconds(AIM)} ms: {'met' if met else 'missed'}."
    head = (f"{SLOTS} slots, all busy, ms", "times", "p50", "p95", "longest")
    return f"{machine.describe_machine()}\n\n{table(head, rows)}\n\n{verdict}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.lanes",
        description=__doc__.split("\n")[0],
        epilog="Example: python -m benchmarks.lanes --messages 50 --background 10",
    )
    parser.add_argument("--messages", type=int, default=50, help="how many messages preempt (50)")
    parser.add_argument("--background", type=int, default=10, help="how many background turns wait (10)")
    parser.add_argument("--json", action="store_true", help="print the seconds as JSON")
    options = parser.parse_args()
    with provider_process() as provider:
        uvloop = {"use_uvloop": True}
        preemption = anyio.run(measure_preemption, provider, options.messages, backend_options=uvloop)
        starvation = anyio.run(measure_starvation, provider, options.background, backend_options=uvloop)
    figures = {**preemption, **starvation}
    print(json.dumps(figures) if options.json else report(figures))


if __name__ == "__main__":
    main()
