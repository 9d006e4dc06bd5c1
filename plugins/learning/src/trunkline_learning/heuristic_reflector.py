"""Lessons of a turn without a model: from the kinds of its failures, and from the tools of a success. Pure.

The *Reflector* of the paper in its plain form; ``asking`` has the one that asks a model. What it finds is a delta for
the *Curator* (``playbook.merged``).
"""

import re
from collections.abc import Iterator, Mapping

from trunkline_learning.failures import ADVICE, classify_failure
from trunkline_learning.playbook import AddStrategy, MarkStrategy, PlaybookOperation, Tag
from trunkline_learning.text import cut
from trunkline_learning.turns import FinishedTurn
from trunkline_learning.verdicts import Verdict

FAILURE_CONFIDENCE, SUCCESS_CONFIDENCE = 0.9, 0.8

_TAGS: Mapping[Verdict, Tag] = {"success": "helpful", "failure": "harmful", "unknown": "neutral"}

_EDITING = re.compile(r"(file_edit|edit|replace)")
_RUNNING = re.compile(r"(execute|bash|shell|run_command|program)")


def failure_kinds(turn: FinishedTurn) -> tuple[str, ...]:
    """Return the kinds of the turn's tool failures, each once."""
    return tuple(dict.fromkeys(name for tool in turn.tools if (name := classify_failure(tool)) is not None))


def failure_lessons(turn: FinishedTurn) -> tuple[PlaybookOperation, ...]:
    """Return the lessons of the turn's own errors, independent of what the person says about the turn."""
    found: dict[str, PlaybookOperation] = {}
    for tool in turn.tools:
        name = classify_failure(tool)
        if name is not None:
            found.setdefault(
                name,
                AddStrategy(
                    section="pitfalls",
                    strategy=ADVICE[name],
                    context=f"{tool.name}: {name.replace('_', ' ')}",
                    tools=(tool.name,),
                    outcome="failure",
                    confidence=FAILURE_CONFIDENCE,
                ),
            )
    return tuple(found.values())


def undo_marks(turn: FinishedTurn, verdict: Verdict) -> tuple[PlaybookOperation, ...]:
    """The marks of a verdict that turned out wrong, undone."""
    return tuple(MarkStrategy(id=id, tag=_TAGS[verdict], undone=True) for id in turn.strategies)


def outcome_operations(turn: FinishedTurn, verdict: Verdict) -> tuple[PlaybookOperation, ...]:
    """Return the operations that follow from a verdict: marks for the strategies that the turn had, and what worked for
    which task."""
    marks = tuple(MarkStrategy(id=id, tag=_TAGS[verdict]) for id in turn.strategies)
    return (*marks, *_successes(turn)) if verdict == "success" else marks


def _successes(turn: FinishedTurn) -> Iterator[PlaybookOperation]:
    names = [tool.name for tool in turn.tools if not tool.failed]
    for name in dict.fromkeys(names):
        if _EDITING.search(name) or _RUNNING.search(name):
            steps = " → ".join(dict.fromkeys(names))
            yield AddStrategy(
                section="tools", strategy=f"{steps} worked for: {cut(turn.task, 120)}", context=cut(turn.task, 200),
                tools=(name,), outcome="success", confidence=SUCCESS_CONFIDENCE,
            )  # fmt: skip
            return
