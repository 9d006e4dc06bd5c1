"""Clients that talk for a while, over one way, and what came of it. No printing in here.

Two loads. *Closed*: the model answers at once and every client asks again at once, which finds saturation. *Paced*:
200 ms to the first word, then 20 words 10 ms apart, so that waiting for a full CPU is not counted as overhead; its
clients begin evenly spread over the length of a turn, or they would go through every step of it together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter

import anyio

from benchmarks.deployments import Conversation, Deployment, TurnTiming
from benchmarks.figures import percentile
from benchmarks.machine import CpuUsage


@dataclass(frozen=True, slots=True)
class LoadProfile:
    """What is asked, and over how many seconds the clients' beginnings are spread."""

    name: str
    program: str
    spread: float


LOADS = {
    "closed": LoadProfile("closed", "say:ok", 0.0),
    "paced": LoadProfile("paced", "wait:0.2 ;; slow:20:10", 0.4),
}
TURNS_PER_CONVERSATION = 5
"""Turns in a conversation before its client begins another one: mostly continued, as people do."""


@dataclass(frozen=True, slots=True)
class LoadRound:
    """A load of so many clients on one way. Seconds; ``cpu`` is by process and turn, ``others`` in cores."""

    way: str
    load: str
    clients: int
    first: tuple[float, ...]
    rate: float
    cpu: Mapping[str, float]
    others: float

    def at(self, share: float) -> float:
        """A percentile of the seconds to the first text."""
        return percentile(self.first, share)


async def run_round(
    name: str, way: Deployment, load: LoadProfile, clients: int, turns: int, ours: Mapping[str, int]
) -> LoadRound:
    """Let ``clients`` talk until ``turns`` are done; ``ours`` are processes of this run that are not the way's."""
    asked: list[TurnTiming] = []
    left = iter(range(turns))
    usage = CpuUsage({**way.pids, **{n: ours[n] for n in ("client", "model")}}, ours)
    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        for number in range(clients):
            tasks.start_soon(_client, way, load, load.spread * number / clients, left, asked)
    seconds = perf_counter() - began
    cpu = {process: used / len(asked) for process, used in usage.seconds().items()}
    first = tuple(one.first for one in asked)
    return LoadRound(name, load.name, clients, first, len(asked) / seconds, cpu, usage.others())


async def _client(
    way: Deployment, load: LoadProfile, pause: float, left: Iterator[int], asked: list[TurnTiming]
) -> None:
    await anyio.sleep(pause)
    conversation = Conversation()
    for number, _ in enumerate(left, start=1):
        asked.append(await way.ask(load.program, conversation))
        if number % TURNS_PER_CONVERSATION == 0:
            conversation = Conversation()
