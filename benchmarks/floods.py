"""``python -m benchmarks.floods``: very many, or very large, of something; each on a platform of real processes.

For each flood it prints what came of it, how long it took, what each process took of the processor, how others fared
who asked something in conversations of their own meanwhile, and how many lines a second the logs grew by. The cost must
grow with the number at most, or be refused in plain words, and others must be answered. ``--share`` makes all smaller.
"""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
import httpx

from benchmarks import machine
from benchmarks.figures import milliseconds, percentile, progress, table
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.conversations.messages import ListConversations
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.errors import TrunklineError
from trunkline.testing.scripted_provider import provider_process
from trunkline_bus import RemoteFault

WORKERS = ("gateway", "monitor", "tools", "memory")
TIMEOUT = 300.0
"""Seconds that a flood may take."""

PLUGIN = '''
import trunkline


@trunkline.hookimpl
def trunkline_tools():
    @trunkline.tool(effect="read")
    async def flood(size: int, line: int = 0) -> str:
        """So many bytes, in lines of that length."""
        return ("x" * (line - 1) + "\\\\n") * (size // line) if line else "x" * size

    @trunkline.tool(effect="read")
    async def take(text: str) -> str:
        """Say how much it was given."""
        return str(len(text))

    return [flood, take]
'''


@dataclass
class FloodStage:
    """What a flood is given, and what is found meanwhile."""

    running: ProcessPlatform
    http: httpx.AsyncClient
    share: float
    took: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def scaled(self, number: int) -> int:
        """So many, or as many of them as are wished for."""
        return max(4, int(number * self.share))

    async def run_all(self, jobs: list[Callable[[], Awaitable[str]]], together: int = 100) -> str:
        """Do all of them and tell how often each outcome came."""
        found: Counter[str] = Counter()
        limit = anyio.CapacityLimiter(together)

        async def one(job: Callable[[], Awaitable[str]]) -> None:
            async with limit:
                try:
                    found[await job()] += 1
                except (RemoteFault, TrunklineError, httpx.HTTPError) as error:
                    found[_error_name(error)] += 1

        async with anyio.create_task_group() as tasks:
            for job in jobs:
                tasks.start_soon(one, job)
        return ", ".join(f"{count} × {outcome}" for outcome, count in found.most_common())

    async def send_message(self, text: str, **given: Any) -> str:
        """Hand in a message."""
        await self.running.send(text, **given)
        return "accepted"

    async def chat(self, body: Mapping[str, Any]) -> str:
        """What OpenAI's route answers."""
        response = await self.http.post("/v1/chat/completions", json={"model": "main", **body})
        if response.status_code != 200:
            return f"{response.status_code}: {response.json()['error']['message']}"
        return str(response.json()["choices"][0]["message"]["content"])[:60]

    async def subscribe(self, accepted: MessageAccepted) -> str:
        """Read a turn's events for a second, and say whether the gateway let it."""
        async with self.http.stream("GET", f"/api/turns/{accepted.turn}/events") as response:
            with anyio.move_on_after(1.0):
                async for _ in response.aiter_lines():
                    pass
            return "listening" if response.status_code == 200 else str(response.status_code)


async def queued(stage: FloodStage) -> str:
    """2 000 messages into one conversation"""
    first = await stage.running.send("wait:600")
    send = partial(stage.send_message, "say:more", conversation=first.conversation)
    found = await stage.run_all([send] * stage.scaled(2_000))
    await stage.running.gateway.cancel(first.turn)
    return found


async def conversations(stage: FloodStage) -> str:
    """2 000 messages that wait, each in a conversation of its own, and their list"""
    found = await stage.run_all([partial(stage.send_message, "wait:20")] * stage.scaled(2_000))
    began = perf_counter()
    page = await stage.running.gateway.conversations(ListConversations(limit=100))
    return f"{found}; listed {page.total} in {perf_counter() - began:.1f} s"


async def approvals(stage: FloodStage) -> str:
    """1 000 approvals that wait, each in a conversation of its own, and their list"""
    request = 'call:write_file {"path": "a.md", "content": "x"} ;; say:done'
    count = stage.scaled(1_000)
    found = await stage.run_all([partial(stage.send_message, request)] * count, together=20)
    while len(await stage.running.gateway.waiting()) < count:  # noqa: ASYNC110  asked over the bus
        await anyio.sleep(1.0)
    began = perf_counter()
    waiting = await stage.running.gateway.waiting()
    listed = perf_counter() - began
    one = waiting[0]
    await stage.running.gateway.decide(one.turn, one.call, one.call_hash, allow=True)
    return f"{found}; listed in {listed:.1f} s, decided in {perf_counter() - began - listed:.1f} s"


async def argument(stage: FloodStage) -> str:
    """A call with an argument of 5 MB"""
    return await _called(stage, "take", {"text": "x" * stage.scaled(700_000)}, 7)


async def result(stage: FloodStage) -> str:
    """A tool's result of 50 MB"""
    return await _called(stage, "flood", {"size": stage.scaled(50_000_000)})


async def lines(stage: FloodStage) -> str:
    """A tool's result of 200 000 lines"""
    return await _called(stage, "flood", {"size": stage.scaled(8_000_000), "line": 40})


async def _called(stage: FloodStage, tool: str, arguments: Mapping[str, Any], times: int = 1) -> str:
    calls = " ".join([f"{tool} {json.dumps(arguments)}"] * times)
    answer = await stage.running.say(f"parallel:{calls} ;; say:done")
    return f"{answer.ended.reason} {answer.ended.code or ''}: {answer.text[:40]}"


async def client_tools(stage: FloodStage) -> str:
    """5 000 tools of a client in one request"""
    tools = [
        {"type": "function", "function": {"name": f"tool_{n}", "description": "d" * 100, "parameters": {}}}
        for n in range(stage.scaled(5_000))
    ]
    return await stage.chat({"messages": [{"role": "user", "content": "say:hello"}], "tools": tools})


async def message(stage: FloodStage) -> str:
    """A message of 5 MB, over the bus and OpenAI's route"""
    text = "say:" + "x" * stage.scaled(5_000_000)
    over_bus = await stage.run_all([partial(stage.send_message, text)])
    return f"{over_bus}; {await stage.chat({'messages': [{'role': 'user', 'content': text}]})}"


async def endless(stage: FloodStage) -> str:
    """100 request bodies without end"""

    async def body() -> Any:
        while True:
            yield b" " * 65_536
            await anyio.sleep(0.01)

    async def one() -> str:
        return str((await stage.http.post("/conversations/messages", content=body())).status_code)

    return await stage.run_all([one] * stage.scaled(100))


async def subscribers(stage: FloodStage) -> str:
    """10 000 readers of a message that waits, each of which comes back"""
    first = await stage.running.send("wait:600")
    second = await stage.running.send("say:later", conversation=first.conversation)
    found = await stage.run_all([partial(stage.subscribe, second)] * stage.scaled(10_000), together=500)
    await stage.running.gateway.cancel(first.turn)
    return found


FLOODS: tuple[Callable[[FloodStage], Awaitable[str]], ...] = (
    queued, conversations, approvals, argument, result, lines, client_tools, message, endless, subscribers,
)  # fmt: skip


async def measure(
    flood: Callable[[FloodStage], Awaitable[str]], provider: str, share: float
) -> dict[str, Any]:
    """One flood on a platform of its own."""
    progress(flood.__doc__ or "")
    config = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        "monitor.model_idle_timeout": 3_600.0,
        "approvals.deadline": 3_600.0,
        "gateway.body_timeout": 5.0,
        "gateway.max_content": 50_000_000 if flood is argument else 1_000_000,
        "permissions.approvals": "some" if flood is approvals else "none",
    }
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        async with process_platform(
            Path(folder), config=config, workers=WORKERS, plugins={"flooding": PLUGIN}, timeout=TIMEOUT
        ) as running:
            await running.say("say:warm")
            headers = {"authorization": f"Bearer {running.token}"}
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(
                base_url=running.url, headers=headers, timeout=60.0, limits=limits
            ) as http:
                return await _run_flood(flood, FloodStage(running, http, share))


async def _run_flood(flood: Callable[[FloodStage], Awaitable[str]], stage: FloodStage) -> dict[str, Any]:
    ours = {name: process.pid for name, process in stage.running.processes.items()}
    usage = machine.CpuUsage({**ours, "nats": stage.running.server.pid}, {})
    lines_before, began = stage.running.logs().count("\n"), perf_counter()
    outcome = f"NOT OVER in {TIMEOUT:g} s"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_ask_meanwhile, stage)
        with anyio.move_on_after(TIMEOUT):
            outcome = await flood(stage)
        await anyio.sleep(3.0)
        tasks.cancel_scope.cancel()
    seconds = perf_counter() - began
    ready = (await stage.http.get("/readyz")).status_code
    return {
        "flood": flood.__doc__,
        "outcome": outcome,
        "seconds": seconds,
        "cpu": {name: spent for name, spent in usage.seconds().items() if spent >= 0.1},
        "others": len(stage.took),
        "others_worst": percentile(stage.took, 1.0) if stage.took else None,
        "others_failed": len(stage.failed),
        "lines_a_second": (stage.running.logs().count("\n") - lines_before) / seconds,
        "ready": ready,
    }


async def _ask_meanwhile(stage: FloodStage) -> None:
    while True:
        began = perf_counter()
        try:
            await stage.running.say("say:hello")
            stage.took.append(perf_counter() - began)
        except (RemoteFault, TrunklineError) as error:
            stage.failed.append(_error_name(error))
        await anyio.sleep(0.2)


def _error_name(error: Exception) -> str:
    return str(error.code) if isinstance(error, RemoteFault) else type(error).__name__


def report(found: list[dict[str, Any]]) -> str:
    """The figures as Markdown."""
    head = (
        "flood",
        "result",
        "s",
        "CPU s",
        "others: answered, failed, worst ms",
        "log lines/s",
        "readyz",
    )
    rows = [
        (
            one["flood"],
            one["outcome"],
            f"{one['seconds']:.0f}",
            ", ".join(f"{name} {spent:.1f}" for name, spent in one["cpu"].items()),
            f"{one['others']}, {one['others_failed']}, {milliseconds(one['others_worst'] or 0)}",
            f"{one['lines_a_second']:.1f}",
            one["ready"],
        )
        for one in found
    ]
    return f"{machine.describe_machine()}\n\n{table(head, rows)}"


def main() -> None:
    """Measure and print."""
    names = {flood.__name__: flood for flood in FLOODS}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floods", description=__doc__.split("\n")[0])
    parser.add_argument("floods", nargs="*", metavar="FLOOD", help=f"which: {', '.join(names)} (all)")
    parser.add_argument("--share", type=float, default=1.0, help="how much of each flood (1)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, in seconds")
    given = parser.parse_args()
    found = []
    for name in given.floods or names:
        with provider_process() as provider:
            options = {"use_uvloop": True}
            found.append(anyio.run(measure, names[name], provider, given.share, backend_options=options))
    print(json.dumps(found, indent=2) if given.json else report(found))


if __name__ == "__main__":
    main()
