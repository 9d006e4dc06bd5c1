"""``python -m benchmarks.calls``: what many tool calls cost, in one answer and one after the other in one turn.

Everything runs in one process, so the processor's seconds are all of Trunkline but NATS and the disk. *Calls*: a model
asks for so many reads in one answer, all of which are run, while another conversation is asked something again and
again. *Steps*: a model asks for one read in each of so many answers. The cost of a call, or of a step, must not grow
with their number.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import anyio

import trunkline
from benchmarks import machine
from benchmarks.figures import milliseconds, percentile, progress, table
from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.models.adapter import Call, ModelAdapter, ModelRequest
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ReplyItems, ScriptedModel

QUARTERS = 4


class ToolCallPlugin:
    """A plugin with a tool that reads nothing, and a model that asks for it as often as it is told to."""

    def __init__(self) -> None:
        self.clock: list[float] = []
        """The processor's seconds at each question of a turn of many steps."""

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[trunkline.Tool]:
        @trunkline.tool(effect="read")
        async def look(text: str) -> str:
            """Look."""
            return text

        return [look]

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [ScriptedModel(self._reply)]

    def _reply(self, request: ModelRequest) -> ReplyItems:
        call_request, _, count = next(
            m.content for m in reversed(request.messages) if m.role == "user"
        ).partition(" ")
        asked = sum(message.role == "assistant" for message in request.messages)
        if call_request == "calls" and not asked:
            return [_look(number) for number in range(int(count))]
        if call_request == "steps":
            self.clock.append(process_time())
            if asked < int(count):
                return [_look(asked)]
        return "done"


def _look(number: int) -> Call:
    return Call(ToolCall(id=f"call_{number}", name="look", arguments={"text": str(number)}))


async def measure(calls: Sequence[int], steps: int) -> dict[str, Any]:
    """Seconds of wall clock and processor."""
    plugin, config = (
        ToolCallPlugin(),
        {
            "runtime.provider_adapter": "scripted",
            "monitor.max_tool_calls": max(calls),
            "bus.sync_interval": "always",
        },
    )
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        async with platform(Path(folder), plugins=[plugin], config=config, timeout=600.0) as running:
            await running.say("warm up")
            found = [await _calls(running, count) for count in calls]
            progress(f"{steps} steps")
            await running.say(f"steps {steps}")
            progress("")
    return {"calls": found, "steps": _quarters(plugin.clock)}


async def _calls(running: Platform, count: int) -> dict[str, float]:
    progress(f"{count} calls")
    others: list[float] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_keep_asking, running, others)
        wall, cpu = perf_counter(), process_time()
        answer = await running.say(f"calls {count}")
        wall, cpu = perf_counter() - wall, process_time() - cpu
        tasks.cancel_scope.cancel()
    assert answer.text == "done"
    return {
        "calls": count,
        "seconds": wall,
        "cpu_per_call": cpu / count,
        "others": len(others),
        "others_p95": percentile(others, 0.95) if others else wall,
    }


async def _keep_asking(running: Platform, took: list[float]) -> None:
    while True:
        begun = perf_counter()
        await running.say("hello")
        took.append(perf_counter() - begun)
        await anyio.sleep(0.1)


def _quarters(clock: Sequence[float]) -> list[float]:
    """The processor's seconds of a step, in each quarter of the turn."""
    length = (len(clock) - 1) // QUARTERS
    return [(clock[(n + 1) * length] - clock[n * length]) / length for n in range(QUARTERS)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--calls", type=int, nargs="+", default=[100, 1000, 5000], help="in one answer (100 1000 5000)"
    )
    parser.add_argument("--steps", type=int, default=1000, help="answers with one call each (1000)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, in seconds")
    given = parser.parse_args()
    whole = machine.describe_machine()
    figures = anyio.run(measure, given.calls, given.steps, backend_options={"use_uvloop": True})
    if given.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"{whole}\n")
    first = figures["calls"][0]["cpu_per_call"]
    rows = [
        [
            str(one["calls"]),
            f"{one['seconds']:.2f}",
            milliseconds(one["cpu_per_call"]),
            f"{one['cpu_per_call'] / first:.2f}",
            str(one["others"]),
            milliseconds(one["others_p95"]),
        ]
        for one in figures["calls"]
    ]
    print(table(("calls in one answer", "s", "CPU ms per call", "ratio", "others answered", "p95 ms"), rows))
    quarters = figures["steps"]
    rows = [
        [f"quarter {number}", milliseconds(cost), f"{cost / quarters[0]:.2f}"]
        for number, cost in enumerate(quarters, 1)
    ]
    print("\n" + table((f"{given.steps} steps in one turn", "CPU ms per step", "ratio"), rows))


if __name__ == "__main__":
    main()
