"""Selection of the strategies for a task, and their form for the model. Pure."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from trunkline.api.nlp import concepts, similarity
from trunkline_learning.model_folders import model_weight
from trunkline_learning.playbook import SECTIONS, Strategy

MAX_STRATEGIES = 10
MAX_PER_OUTCOME = 5
CONTEXT, TOOLS, CONFIDENCE, RECENT = 0.4, 0.3, 0.2, 0.1
RECENT_WINDOW = timedelta(days=7)
MIN_RELEVANCE = 0.25
"""A strategy below this score has nothing to do with the task."""

_ID = re.compile(r"^\[((?:str|tool|code|pit|chk|term)-[a-z0-9]{8})\] ", re.MULTILINE)


def relevance(strategy: Strategy, task: str, now: datetime) -> float:
    """Return the relevance of a strategy to a task: topic 0.4, tools 0.3, confidence 0.2, seen recently 0.1.

    Confidence counts by what the strategy did: every mark moves it towards helpful or harmful.
    """
    about = max(
        similarity(task, f"{strategy.context} {strategy.strategy}"), similarity(task, strategy.context)
    )
    named = _names(task, strategy.tools)
    marks = strategy.helpful + strategy.harmful
    trust = strategy.confidence * (1 + strategy.helpful) / (1 + marks)
    lately = now - (strategy.last_seen or strategy.timestamp) <= RECENT_WINDOW
    return CONTEXT * about + TOOLS * named + CONFIDENCE * trust + RECENT * lately


def select_strategies(
    task: str, strategies: Iterable[tuple[str, Strategy]], *, model: str, now: datetime
) -> tuple[Strategy, ...]:
    """The strategies for a task, best first: ``MAX_STRATEGIES`` at most, ``MAX_PER_OUTCOME`` from failures and from
    successes.

    Each comes with the folder of the model it was learned with. What has no word in common with the task is left
    out.
    """
    ranked: list[tuple[float, Strategy]] = []
    for folder, one in strategies:
        if _related(one, task):
            ranked.append((relevance(one, task, now) * model_weight(folder, model), one))
    ranked.sort(key=lambda pair: (-pair[0], pair[1].id))
    picked: list[Strategy] = []
    for value, one in ranked:
        kin = sum(other.outcome == one.outcome for other in picked)
        known = any(other.id == one.id for other in picked)
        if value >= MIN_RELEVANCE and kin < MAX_PER_OUTCOME and len(picked) < MAX_STRATEGIES and not known:
            picked.append(one)
    return tuple(picked)


def render_strategies(strategies: Sequence[Strategy]) -> str:
    """The strategies as a model sees them, by section, each with its id and counters as in the paper."""
    parts = []
    for section, heading in SECTIONS.items():
        lines = [_line(one) for one in strategies if one.section == section]
        if lines:
            parts.append("\n".join([f"## {heading}", *lines]))
    return "\n".join(parts)


def parse_strategy_ids(text: str) -> tuple[str, ...]:
    """The strategies that stood in a context, by the ids that ``render_strategies`` wrote."""
    return tuple(dict.fromkeys(_ID.findall(text)))


def _line(one: Strategy) -> str:
    when = f" (when: {one.context})" if one.context else ""
    return f"[{one.id}] helpful={one.helpful} harmful={one.harmful} :: {' '.join(one.strategy.split())}{when}"


def _related(one: Strategy, task: str) -> bool:
    return _names(task, one.tools) or similarity(task, f"{one.context} {one.strategy}") > 0


def _names(task: str, tools: Sequence[str]) -> bool:
    """Report whether the task asks for what one of the tools does: ``run the tests`` for ``execute_bash``."""
    verbs = {concept for tool in tools for concept in concepts(tool.replace("_", " ")) if concept != "file"}
    return bool(verbs.intersection(concepts(task)))
