"""``python -m benchmarks.approvals``: from a person's yes to the resumed turn, while a hundred others wait.

Each worker is a process of its own. A click is a decision through the gateway; it is over when the feed says that the
turn goes on (*resumed*), and when it has the result of the call that was allowed (*ran*). The number of those that wait
is kept, by a new question for each that is answered.

With ``--calls`` one turn asks for so many calls in one answer, each of which waits for a yes, and they are allowed one
after the other. Everything runs in one process then, so the processor's seconds are all of Trunkline but NATS and the
disk. The cost of a yes must not grow with the number of those before it.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from time import perf_counter, process_time

import anyio

import trunkline
from benchmarks import machine
from benchmarks.figures import milliseconds, percentile, progress, table
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.approvals.messages import Approval
from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.models.adapter import Call, ModelAdapter, ModelRequest
from trunkline.contracts.turns.feed_messages import ApprovalSettled, ToolEnded
from trunkline.testing.platform import platform
from trunkline.testing.scripted_model import ReplyItems, ScriptedModel
from trunkline.testing.scripted_provider import provider_process

TIMEOUT = 120.0
QUARTERS = 4
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
    request = json.dumps({"path": f"{number}.md", "content": "x"})
    return await running.send(f"call:write_file {request} ;; say:done")


async def _waiting(running: ProcessPlatform, count: int) -> tuple[Approval, ...]:
    with anyio.fail_after(TIMEOUT):
        while len(found := await running.gateway.waiting()) < count:  # noqa: ASYNC110  asked over the bus
            await anyio.sleep(0.1)
    return found


async def _click(running: ProcessPlatform, asked: Approval, accepted: MessageAccepted) -> tuple[float, float]:
    """Seconds until the turn goes on, and until the call has run."""
    watch = running.gateway.watch(accepted.conversation, accepted.turn)
    resumed = 0.0
    with anyio.fail_after(TIMEOUT):
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


class ApprovalPlugin:
    """A plugin with a tool that waits for a yes each time, and a model that asks for so many calls of it."""

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[trunkline.Tool]:
        @trunkline.tool(effect="write")
        async def note(text: str) -> str:
            """Note."""
            return text

        return [note]

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [ScriptedModel(self._reply)]

    def _reply(self, request: ModelRequest) -> ReplyItems:
        if any(message.role == "tool" for message in request.messages):
            return "done"
        count = int(request.messages[-1].content)
        return [Call(ToolCall(id=f"call_{n}", name="note", arguments={"text": str(n)})) for n in range(count)]


async def measure_one_turn(calls: int) -> list[float]:
    """The processor's seconds of a yes, in each quarter of the turn."""
    config = {
        "runtime.provider_adapter": "scripted",
        "permissions.approvals": "some",
        "approvals.deadline": 3_600.0,
        "monitor.max_tool_calls": calls,
        "bus.sync_interval": "always",
    }
    clock: list[float] = []
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        async with platform(
            Path(folder), plugins=[ApprovalPlugin()], config=config, timeout=600.0
        ) as running:
            accepted = await running.send(str(calls))
            while len(asked := await running.gateway.waiting()) < calls:  # noqa: ASYNC110  asked over the bus
                await anyio.sleep(0.2)
            async with aclosing(
                running.gateway.watch(accepted.conversation, accepted.turn).events()
            ) as events:
                for number, one in enumerate(asked):
                    progress(f"yes {number + 1} of {calls}")
                    clock.append(process_time())
                    await running.gateway.decide(one.turn, one.call, one.call_hash, allow=True)
                    async for event in events:
                        if isinstance(event, ToolEnded) and event.call_id == one.call:
                            break
            progress("")
    length = (len(clock) - 1) // QUARTERS
    return [(clock[(n + 1) * length] - clock[n * length]) / length for n in range(QUARTERS)]


def report_one_turn(quarters: Sequence[float], calls: int) -> str:
    """The figures as Markdown."""
    rows = [
        (f"quarter {number}", milliseconds(cost), f"{cost / quarters[0]:.2f}")
        for number, cost in enumerate(quarters, 1)
    ]
    head = (f"{calls} approvals in one turn", "CPU ms per approval", "ratio")
    return f"{machine.describe_machine()}\n\n{table(head, rows)}"


def report(figures: Figures, pending: int) -> str:
    """The figures as Markdown."""
    rows = [
        (name, len(seconds), *(milliseconds(percentile(seconds, share)) for share in (0.5, 0.95, 0.99)))
        for name, seconds in figures.items()
    ]
    met = percentile(figures["resumed"], 0.95) < PROMISED
    verdict = f"Click to resume, p95 below {milliseconds(PROMISED)} ms: {'met' if met else 'missed'}."
    head = (f"with {pending} pending, ms", "times", "p50", "p95", "p99")
    return f"{machine.describe_machine()}\n\n{table(head, rows)}\n\n{verdict}"


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
    parser.add_argument("--calls", type=int, default=0, help="measure one turn with so many calls instead")
    given = parser.parse_args()
    if given.calls:
        quarters = anyio.run(measure_one_turn, given.calls, backend_options={"use_uvloop": True})
        print(json.dumps(quarters) if given.json else report_one_turn(quarters, given.calls))
        return
    with provider_process() as provider:
        figures = anyio.run(
            measure, provider, given.pending, given.clicks, backend_options={"use_uvloop": True}
        )
    print(json.dumps(figures) if given.json else report(figures, given.pending))


if __name__ == "__main__":
    main()
