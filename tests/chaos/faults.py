"""The plan of faults: drawn from a seed, so that a run can be repeated. Nothing is done in here."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from trunkline.messages.workers import WorkerKind

Kind = Literal["kill", "stop", "drain", "cut"]

WORKERS: Mapping[str, WorkerKind] = {
    "monitor-a": "monitor",
    "monitor-b": "monitor",
    "tools-a": "tools",
    "tools-b": "tools",
    "gateway": "gateway",
    "memory": "memory",
}
"""Each worker process and its kind."""

VICTIMS: Mapping[str, int] = {
    "monitor-a": 5,
    "monitor-b": 5,
    "tools-a": 4,
    "tools-b": 4,
    "gateway": 3,
    "memory": 3,
    "nats": 2,
    "client": 1,
}
"""Who may be struck, and how often in proportion. ``client`` is the connection of those who watch."""

KINDS: Mapping[str, Mapping[Kind, int]] = {
    "worker": {"kill": 10, "stop": 3, "drain": 3, "cut": 4},
    "nats": {"kill": 6, "stop": 2, "drain": 2},
    "client": {"cut": 1},
}
"""What may happen to whom: SIGKILL, SIGSTOP and SIGCONT, SIGTERM, a broken connection."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One blow.

    ``pause``: seconds before it. ``preferred``: all victims, of whom the first that is up is struck. ``kinds``: what
    happens, by the sort of victim. ``hold``: seconds of a stop. ``down``: seconds before a dead worker is started.
    """

    number: int
    pause: float
    preferred: tuple[str, ...]
    kinds: Mapping[str, Kind]
    hold: float
    down: float

    def kind(self, victim: str) -> Kind:
        """What happens to this victim."""
        return self.kinds[victim if victim in KINDS else "worker"]


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault that happened: when, to whom, and whether everybody else was up."""

    at: float
    victim: str
    kind: Kind
    alone: bool


def plan(seed: int, count: int, pause: float) -> Iterator[Fault]:
    """``count`` faults, ``pause`` seconds apart on average."""
    draw = random.Random(f"faults/{seed}")
    for number in range(count):
        yield Fault(
            number=number,
            pause=min(draw.expovariate(1 / pause), pause * 3),
            preferred=tuple(_shuffled(draw)),
            kinds={sort: _one_of(draw, kinds) for sort, kinds in KINDS.items()},
            hold=draw.uniform(3.0, 6.0),
            down=draw.choice((0.0, draw.uniform(0.0, 1.0), draw.uniform(1.0, 3.0))),
        )


def _shuffled(draw: random.Random) -> Iterator[str]:
    left = dict(VICTIMS)
    while left:
        name = draw.choices(list(left), list(left.values()))[0]
        del left[name]
        yield name


def _one_of(draw: random.Random, kinds: Mapping[Kind, int]) -> Kind:
    return draw.choices(list(kinds), list(kinds.values()))[0]
