"""Messages of people: turns drawn from a seed, each with its required result. This module sends nothing."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from trunkline.testing.script import words

Mode = Literal["now", "after_step"]


@dataclass(frozen=True, slots=True)
class PlannedMessage:
    """A message to send.

    ``ending``: the required end of the answer, None when it may be cut short. ``whole``: the whole answer, where it is
    known beforehand. ``marks``: its effects. ``cancel`` and ``steer``: after how many seconds. ``queued``: the next
    message does not wait for the answer. ``http``: sent over HTTP. ``late``: after how many seconds a second client
    attaches. ``drop``: after how many events an HTTP client disconnects and reconnects. ``decide``: after how many
    seconds people decide about its call, one from each channel, all at once: ``verdicts``. ``tasks``: those of agents
    that it causes, by their marks.
    """

    kind: str
    mark: str
    program: str
    ending: str | None
    whole: str | None = None
    marks: tuple[str, ...] = ()
    cancel: float | None = None
    mode: Mode = "now"
    steer: float | None = None
    queued: bool = False
    http: bool = False
    late: float | None = None
    drop: int = 0
    decide: float = 0.0
    verdicts: tuple[bool, ...] = ()
    tasks: tuple[str, ...] = ()

    @property
    def steering(self) -> str:
        """Return the message that steers the running turn."""
        return f"say:{self.steered}"

    @property
    def steered(self) -> str:
        """The answer to it."""
        return f"steered-{self.mark}"


def draw_message(draw: random.Random, mark: str, file: str) -> PlannedMessage:
    """A turn. ``mark`` is unique in the run; ``file`` is where effects go."""
    common: dict[str, Any] = {
        "http": draw.random() < 0.4,
        "late": draw.uniform(0.1, 5.0) if draw.random() < 0.4 else None,
        "drop": draw.randint(2, 15) if draw.random() < 0.5 else 0,
    }
    kinds = list(MAKERS)
    made = MAKERS[draw.choices(kinds, (4, 4, 3, 2, 2, 2, 4))[0]]
    return made(draw, mark, file, common)


def _slow(draw: random.Random, mark: str, file: str, common: dict[str, Any]) -> PlannedMessage:
    count = draw.randint(15, 60)
    return PlannedMessage(
        kind="slow",
        mark=mark,
        program=f"slow:{count}:{draw.randint(30, 60)} ;; say:end-{mark}",
        ending=f"end-{mark}",
        whole=f"{words(count)}\nend-{mark}",
        **common,
    )


def transfer(draw: random.Random, mark: str, file: str) -> str:
    """A call with the effect ``mark``, as a program says it."""
    before, after = round(draw.uniform(0, 0.6), 2), round(draw.uniform(0, 1.5), 2)
    return f"transfer {json.dumps({'file': file, 'mark': mark, 'before': before, 'after': after})}"


def _write(draw: random.Random, mark: str, file: str, common: dict[str, Any]) -> PlannedMessage:
    return PlannedMessage(
        kind="write",
        mark=mark,
        program=f"say:Working. ;; call:{transfer(draw, mark, file)} ;; quote ;; say:end-{mark}",
        ending=f"end-{mark}",
        marks=(mark,),
        **common,
    )


def _parallel(draw: random.Random, mark: str, file: str, common: dict[str, Any]) -> PlannedMessage:
    marks = tuple(f"{mark}-{number}" for number in range(draw.randint(2, 3)))
    look = f"look {json.dumps({'mark': mark, 'seconds': round(draw.uniform(0, 1.0), 2)})}"
    calls = " ".join([*(transfer(draw, one, file) for one in marks), look])
    return PlannedMessage(
        kind="parallel",
        mark=mark,
        program=f"parallel:{calls} ;; slow:{draw.randint(10, 30)}:40 ;; say:end-{mark}",
        ending=f"end-{mark}",
        marks=marks,
        **common,
    )


def _cancelled(draw: random.Random, mark: str, file: str, common: dict[str, Any]) -> PlannedMessage:
    tools = draw.random() < 0.5
    first = f"call:{transfer(draw, mark, file)} ;; " if tools else ""
    return PlannedMessage(
        kind="cancel",
        mark=mark,
        program=f"{first}slow:60:50 ;; say:end-{mark}",
        ending=None,
        marks=(mark,) if tools else (),
        cancel=draw.uniform(0.05, 2.5),
        mode=draw.choice(("now", "now", "after_step")),
        **common,
    )


def _steered(draw: random.Random, mark: str, file: str, common: dict[str, Any]) -> PlannedMessage:
    look = json.dumps({"mark": mark, "seconds": 0.7})
    return PlannedMessage(
        kind="steer",
        mark=mark,
        program=f"call:look {look} ;; slow:25:40 ;; say:end-{mark}",
        ending=None,
        steer=draw.uniform(0.05, 3.0),
        **common,
    )


def _queued(draw: random.Random, mark: str, file: str, common: dict[str, Any]) -> PlannedMessage:
    return PlannedMessage(
        kind="queue",
        mark=mark,
        program=f"slow:{draw.randint(3, 12)}:40 ;; say:end-{mark}",
        ending=f"end-{mark}",
        queued=True,
        **common,
    )


def _asked(draw: random.Random, mark: str, file: str, common: dict[str, Any]) -> PlannedMessage:
    """Often others wait behind it; people agree, or not."""
    call = transfer(draw, mark, file).replace("transfer", "pay", 1)
    verdicts = draw.choice(((True,), (True, True), (True, True, True), (False,), (True, False)))
    return PlannedMessage(
        kind="asked",
        mark=mark,
        program=f"say:Working. ;; call:{call} ;; slow:{draw.randint(10, 50)}:40 ;; say:end-{mark}",
        ending=f"end-{mark}",
        marks=(mark,),
        queued=draw.random() < 0.7,
        decide=draw.uniform(0, 4.0),
        verdicts=verdicts,
        **common,
    )


MAKERS: dict[str, Callable[[random.Random, str, str, dict[str, Any]], PlannedMessage]] = {
    "slow": _slow,
    "write": _write,
    "parallel": _parallel,
    "cancel": _cancelled,
    "steer": _steered,
    "queue": _queued,
    "asked": _asked,
}
