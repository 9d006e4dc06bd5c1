"""Which calls are held where, and what strikes them: drawn from a seed, so that a run can be repeated. Does nothing."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Fault = Literal[
    "kill tools", "kill monitor", "kill both", "kill server", "stop tools", "lose acks", "lose acks, kill",
    "race", "cancel", "panic", "deadline", "decide",
]  # fmt: skip

AT_WORKER = (
    "received before", "started before", "started after", "effect before", "effect after",
    "finished before", "finished after", "told before", "told after",
)  # fmt: skip
AT_WORKER_FLYING = ("started flying", "finished flying")
AT_MONITOR = ("planned before", "planned after", "sent before", "sent after", "kept before", "kept after")
AT_MONITOR_FLYING = ("planned flying", "sent flying", "kept flying")
ASKING = ("asked before", "asked after", "decided before", "decided after")
ASKING_FLYING = ("asked flying", "decided flying")

BOUNDARIES = (
    "asked before", "asked flying", "asked after", "decided before", "decided flying", "decided after",
    "planned before", "planned flying", "planned after", "sent before", "sent flying", "sent after",
    "received before", "started before", "started flying", "started after", "effect before", "effect after",
    "finished before", "finished flying", "finished after", "told before", "told after",
    "kept before", "kept flying", "kept after",
)  # fmt: skip
"""Every point of a call, in its order: the question and the decision, the plan in the journal, the call on its way, its
start in the ledger, the effect, its end in the ledger, the reply, the result in the journal."""

WRITTEN = ("started before", "finished before")
"""Where the next thing is a record in the ledger, so that its acknowledgement can get lost."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of wave. ``apart``: calls in turns of their own, because a held journal holds a whole turn. ``asking``:
    a person is asked about each call. ``weight``: how many of all injections are of this kind."""

    fault: Fault
    boundaries: Sequence[str]
    weight: int
    tool: str = "transfer"
    apart: bool = False
    asking: bool = False


KINDS: tuple[Kind, ...] = (
    Kind("kill tools", AT_WORKER, 30),
    Kind("kill tools", AT_WORKER_FLYING, 8),
    Kind("kill monitor", AT_WORKER, 8),
    Kind("kill monitor", AT_MONITOR, 6, apart=True),
    Kind("kill monitor", AT_MONITOR_FLYING, 4, apart=True),
    Kind("kill both", AT_WORKER, 6),
    Kind("kill both", AT_MONITOR, 4, apart=True),
    Kind("kill server", AT_WORKER, 6),
    Kind("kill server", AT_MONITOR, 3, apart=True),
    Kind("stop tools", AT_WORKER, 5),
    Kind("lose acks", WRITTEN, 3),
    Kind("lose acks, kill", WRITTEN, 3),
    Kind("race", AT_WORKER, 5),
    Kind("cancel", AT_WORKER, 6),
    Kind("cancel", AT_MONITOR, 2, apart=True),
    Kind("cancel", ("effect before",), 1, tool="stubborn"),
    Kind("panic", AT_WORKER, 5),
    Kind("panic", AT_MONITOR, 2, apart=True),
    Kind("deadline", ("effect before",), 1, tool="overdue"),
    Kind("decide", AT_WORKER, 3, asking=True, apart=True),
    Kind("kill tools", AT_WORKER, 2, asking=True, apart=True),
    Kind("kill monitor", ASKING, 3, asking=True, apart=True),
    Kind("kill monitor", ASKING_FLYING, 2, asking=True, apart=True),
    Kind("kill server", ASKING, 2, asking=True, apart=True),
    Kind("cancel", ASKING, 2, asking=True, apart=True),
    Kind("panic", ASKING, 1, asking=True, apart=True),
)
"""All of them. Together they strike at every boundary."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Calls that are stopped at the same time, then struck by one fault. ``turns``: the marks of each turn's calls."""

    number: int
    kind: Kind
    turns: tuple[tuple[str, ...], ...]
    draw: random.Random

    @property
    def marks(self) -> tuple[str, ...]:
        """All calls."""
        return tuple(mark for marks in self.turns for mark in marks)

    @property
    def flying(self) -> bool:
        """Report whether the stopped processes end themselves."""
        return self.kind.boundaries[0].endswith("flying")


def wave(seed: int, number: int, kind: Kind, turns: int, calls: int) -> Wave:
    """A wave of ``turns`` turns with ``calls`` calls each, or as many calls in turns of their own."""
    each = 1 if kind.apart else calls
    at = kind.boundaries
    names = [
        tuple(f"{number}.{turn}-{call}@{at[(turn * each + call) % len(at)]}" for call in range(each))
        for turn in range(turns)
    ]
    return Wave(number, kind, tuple(names), random.Random(f"effects/{seed}/{number}"))


def plan(seed: int, injections: int, turns: int, calls: int, kinds: Sequence[Kind] = KINDS) -> Iterator[Wave]:
    """Waves without end: one of each kind, then as many as make its share of ``injections`` calls, and again."""
    shares = _shares(kinds, injections)
    order = random.Random(f"effects/{seed}")
    number = 0
    while True:
        more = [kind for kind in kinds for _ in range(_waves(kind, shares[kind], turns, calls) - 1)]
        for kind in (*order.sample(kinds, len(kinds)), *order.sample(more, len(more))):
            yield wave(seed, number, kind, turns, calls)
            number += 1


def _shares(kinds: Sequence[Kind], injections: int) -> Mapping[Kind, float]:
    whole = sum(kind.weight for kind in kinds)
    return {kind: injections * kind.weight / whole for kind in kinds}


def _waves(kind: Kind, share: float, turns: int, calls: int) -> int:
    return max(1, round(share / (turns * (1 if kind.apart else calls))))
