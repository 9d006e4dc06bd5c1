"""Messages of people that give tasks to agents, drawn from a seed, each with its required result. Sends nothing."""

import json
import random
from typing import Any

from .programs import MAKERS, PlannedMessage, transfer

DEEPER = 0.3
"""The share of tasks that give a task to an agent of their own."""


def draw_mixed_message(draw: random.Random, mark: str, file: str) -> PlannedMessage:
    """A turn like those of ``draw_message``; two of five give tasks to agents."""
    if draw.random() < 0.4:
        make = _cancelled_family if draw.random() < 0.2 else _family
        return make(draw, mark, file)
    make = MAKERS[draw.choice(list(MAKERS))]
    return make(draw, mark, file, {"http": draw.random() < 0.4})


def answer_of(task: str) -> str:
    """The text with which the agent of a task ends."""
    return f"got-{task}."


def _family(draw: random.Random, mark: str, file: str) -> PlannedMessage:
    """One to three tasks at once; the answer quotes their results."""
    programs, tasks, effects = _tasks(draw, mark, file)
    return PlannedMessage(
        kind="family",
        mark=mark,
        program=f"parallel:{' '.join(map(_call, programs))} ;; quote ;; say:end-{mark}",
        ending=f"end-{mark}",
        marks=effects,
        tasks=tasks,
        http=draw.random() < 0.3,
        queued=draw.random() < 0.3,
    )


def _cancelled_family(draw: random.Random, mark: str, file: str) -> PlannedMessage:
    """The same, cancelled while the tasks run, perhaps."""
    programs, tasks, effects = _tasks(draw, mark, file)
    return PlannedMessage(
        kind="cancelled family",
        mark=mark,
        program=f"parallel:{' '.join(map(_call, programs))} ;; slow:60:50",
        ending=None,
        marks=effects,
        tasks=tasks,
        cancel=draw.uniform(0.05, 4.0),
    )


def _tasks(draw: random.Random, mark: str, file: str) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    """Programs of the tasks, the marks of all tasks, and the marks of their effects."""
    programs, tasks, effects = [], [], []
    for number in range(draw.randint(1, 3)):
        task = f"{mark}-{number}"
        tasks.append(task)
        if draw.random() < DEEPER:
            inner = f"{task}-0"
            tasks.append(inner)
            effects.append(inner)
            programs.append(f"call:{_call(_effect(draw, inner, file))}\nquote\nsay:{answer_of(task)}")
        elif draw.random() < 0.5:
            effects.append(task)
            programs.append(_effect(draw, task, file))
        else:
            programs.append(f"slow:{draw.randint(3, 20)}:40\nsay:{answer_of(task)}")
    return programs, tuple(tasks), tuple(effects)


def _effect(draw: random.Random, task: str, file: str) -> str:
    return f"call:{transfer(draw, task, file)}\nsay:{answer_of(task)}"


def _call(program: str) -> str:
    arguments: dict[str, Any] = {"task": program}
    return f"agent_run {json.dumps(arguments)}"
