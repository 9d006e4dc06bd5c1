"""Which strategies a task is given, and how a model sees them (MN-F23, MN-D5). Pure."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from trunkline._util.nlp.similarity import concepts, similarity
from trunkline_learning.model_folders import weight
from trunkline_learning.playbook import SECTIONS, Strategy

MOST = 10
MOST_OF_A_KIND = 5
CONTEXT, TOOLS, CONFIDENCE, RECENT = 0.4, 0.3, 0.2, 0.1
LATELY = timedelta(days=7)
LEAST = 0.25
"""A strategy below this score has nothing to do with the task."""

_ID = re.compile(r"^\[((?:str|tool|code|pit|chk|term)-[a-z0-9]{8})\] ", re.MULTILINE)


def score(strategy: Strategy, task: str, now: datetime) -> float:
    """How much a strategy has to do with a task: what it is about .4, its tools .3, confidence .2, seen lately .1.

    Confidence counts by what the strategy did: every mark moves it towards helpful or harmful.
    """
    about = max(
        similarity(task, f"{strategy.context} {strategy.strategy}"), similarity(task, strategy.context)
    )
    named = _names(task, strategy.tools)
    marks = strategy.helpful + strategy.harmful
    trust = strategy.confidence * (1 + strategy.helpful) / (1 + marks)
    lately = now - (strategy.last_seen or strategy.timestamp) <= LATELY
    return CONTEXT * about + TOOLS * named + CONFIDENCE * trust + RECENT * lately


def chosen(
    task: str, strategies: Iterable[tuple[str, Strategy]], *, model: str, now: datetime
) -> tuple[Strategy, ...]:
    """The strategies for a task, best first: ``MOST`` at most, ``MOST_OF_A_KIND`` from failures and from successes.

    Each comes with the folder of the model it was learned with. What has no word in common with the task is left
    out.
    """
    ranked: list[tuple[float, Strategy]] = []
    for folder, one in strategies:
        if _related(one, task):
            ranked.append((score(one, task, now) * weight(folder, model), one))
    ranked.sort(key=lambda pair: (-pair[0], pair[1].id))
    picked: list[Strategy] = []
    for value, one in ranked:
        kin = sum(other.outcome == one.outcome for other in picked)
        known = any(other.id == one.id for other in picked)
        if value >= LEAST and kin < MOST_OF_A_KIND and len(picked) < MOST and not known:
            picked.append(one)
    return tuple(picked)


def rendered(strategies: Sequence[Strategy]) -> str:
    """The strategies as a model sees them, by section, each with its id and counters as in the paper."""
    parts = []
    for section, heading in SECTIONS.items():
        lines = [_line(one) for one in strategies if one.section == section]
        if lines:
            parts.append("\n".join([f"## {heading}", *lines]))
    return "\n".join(parts)


def ids_in(text: str) -> tuple[str, ...]:
    """The strategies that stood in a context, by the ids that ``rendered`` wrote."""
    return tuple(dict.fromkeys(_ID.findall(text)))


def _line(one: Strategy) -> str:
    when = f" (when: {one.context})" if one.context else ""
    return f"[{one.id}] helpful={one.helpful} harmful={one.harmful} :: {' '.join(one.strategy.split())}{when}"


def _related(one: Strategy, task: str) -> bool:
    return _names(task, one.tools) or similarity(task, f"{one.context} {one.strategy}") > 0


def _names(task: str, tools: Sequence[str]) -> bool:
    """Whether the task asks for what one of the tools does: ``run the tests`` for ``execute_bash``."""
    verbs = {concept for tool in tools for concept in concepts(tool.replace("_", " ")) if concept != "file"}
    return bool(verbs.intersection(concepts(task)))
