"""The plan of faults: drawn from a seed, so that a run can be repeated. Nothing is done in here."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from trunkline.contracts.streams import FAILOVER_SECONDS
from trunkline.contracts.workers.messages import WorkerKind

Kind = Literal["kill", "stop", "drain", "cut", "full"]

WORKERS: Mapping[str, WorkerKind] = {
    "monitor-a": "monitor",
    "monitor-b": "monitor",
    "tools-a": "tools",
    "tools-b": "tools",
    "gateway-a": "gateway",
    "gateway-b": "gateway",
    "memory": "memory",
}
"""Each worker process and its kind."""

LEADERS = ("stream leader", "meta leader")
"""Whichever server of a cluster leads the journal, or the cluster itself, at the time."""

DISKS = ("bus disk", "memory disk")
"""The disks of nats-server's store and of the memory root."""

_WORKERS = {
    "monitor-a": 5,
    "monitor-b": 5,
    "tools-a": 4,
    "tools-b": 4,
    "gateway-a": 3,
    "gateway-b": 3,
    "memory": 3,
}


def victims(servers: tuple[str, ...], *, disks: bool = False) -> Mapping[str, int]:
    """Return the possible victims, with their weights. ``client`` is the connection of the observers."""
    if disks:
        return dict.fromkeys(DISKS, 1)
    led = dict.fromkeys(LEADERS, 3) if len(servers) > 1 else {}
    return {**_WORKERS, **dict.fromkeys(servers, 2), **led, "client": 1}


KINDS: Mapping[str, Mapping[Kind, int]] = {
    "worker": {"kill": 10, "stop": 3, "drain": 3, "cut": 4},
    "server": {"kill": 6, "stop": 2, "drain": 2},
    "client": {"cut": 1},
    "disk": {"full": 1},
}
"""What may happen to whom: SIGKILL, SIGSTOP and SIGCONT, SIGTERM, a broken connection, no room left."""


def kinds_of(only: Kind | None) -> Mapping[str, Mapping[Kind, int]]:
    """Return ``KINDS``, or of it the one kind of fault, for the sorts of victims that it can strike."""
    if only is None:
        return KINDS
    return {sort: {only: 1} for sort, kinds in KINDS.items() if only in kinds}


def sort_of(victim: str) -> str:
    """Return which row of ``KINDS`` a victim has."""
    if victim in WORKERS:
        return "worker"
    return {"client": "client", **dict.fromkeys(DISKS, "disk")}.get(victim, "server")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    ``pause``: seconds before it. ``patient``: it first waits until every process is up. ``preferred``: all victims, of
    whom the first that is up is struck. ``kinds``: the kind of fault, by the sort of victim. ``hold``: seconds of a
    stop, long enough to lose a pin, or of a full disk. ``down``: seconds before a dead worker is started.
    """

    number: int
    pause: float
    patient: bool
    preferred: tuple[str, ...]
    kinds: Mapping[str, Kind]
    hold: float
    down: float

    def kind(self, victim: str) -> Kind:
        """Return the kind of fault for this victim."""
        return self.kinds[sort_of(victim)]


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault that happened: its time, its victim, and whether every other process was up."""

    at: float
    victim: str
    kind: Kind
    alone: bool


def plan(
    seed: int,
    count: int,
    pause: float,
    weights: Mapping[str, int],
    pile: float,
    only: Kind | None = None,
) -> Iterator[Fault]:
    """Return ``count`` faults, ``pause`` seconds apart on average; a share of ``pile`` strikes even while others are
    down. With ``only``, every fault is of this kind, and strikes only those to whom it may happen."""
    possible = kinds_of(only)
    weights = {victim: weight for victim, weight in weights.items() if sort_of(victim) in possible}
    draw = random.Random(f"faults/{seed}")
    for number in range(count):
        yield Fault(
            number=number,
            pause=min(draw.expovariate(1 / pause), pause * 3),
            patient=draw.random() >= pile,
            preferred=tuple(_shuffled(draw, weights)),
            kinds={sort: _one_of(draw, kinds) for sort, kinds in possible.items()},
            hold=FAILOVER_SECONDS + draw.uniform(0.5, 2.5),
            down=draw.choice((0.0, draw.uniform(0.0, 1.0), draw.uniform(1.0, 3.0))),
        )


def rolling(count: int, pause: float, servers: tuple[str, ...]) -> Iterator[Fault]:
    """``count`` restarts in good order, one process after the other, as an update of the whole installation does."""
    round_of = (*WORKERS, *servers)
    drained: Mapping[str, Kind] = dict.fromkeys(KINDS, "drain")
    for number in range(count):
        victim = round_of[number % len(round_of)]
        yield Fault(number, pause, patient=True, preferred=(victim,), kinds=drained, hold=0.0, down=0.0)


def _shuffled(draw: random.Random, weights: Mapping[str, int]) -> Iterator[str]:
    left = dict(weights)
    while left:
        name = draw.choices(list(left), list(left.values()))[0]
        del left[name]
        yield name


def _one_of(draw: random.Random, kinds: Mapping[Kind, int]) -> Kind:
    return draw.choices(list(kinds), list(kinds.values()))[0]
