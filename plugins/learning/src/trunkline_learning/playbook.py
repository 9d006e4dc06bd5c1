"""The playbook: strategies with stable ids and counters, and how deltas are merged into it. Pure and deterministic.

After "Agentic Context Engineering" (Zhang et al., 2025, arXiv 2510.04618): what is learned is kept as small items that
have ids, and grows by *deltas* (``AddStrategy``, ``MarkStrategy``, ``UpdateStrategy``, ``MergeStrategies``,
``RemoveStrategy``) that code merges. No model writes the whole anew: that is how details are lost (context collapse).
Each item counts how often it was ``helpful`` and ``harmful`` to a turn that had it before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from trunkline.api.bus import key_of
from trunkline.api.nlp import similarity
from trunkline_learning.turns import Audience, Provenance

Section = Literal["strategies", "tools", "snippets", "pitfalls", "checks", "terms"]
SECTIONS: dict[Section, str] = {
    "strategies": "Strategies and hard rules",
    "tools": "Which tools to use for what, and how",
    "snippets": "Useful code and templates",
    "pitfalls": "Pitfalls and what to do about them",
    "checks": "What to verify before answering",
    "terms": "Terms of the field",
}
"""The paper's sections, with the headings that a model sees."""

_PREFIX: dict[Section, str] = {
    "strategies": "str", "tools": "tool", "snippets": "code", "pitfalls": "pit", "checks": "chk", "terms": "term",
}  # fmt: skip

Tag = Literal["helpful", "harmful", "neutral"]

ALIKE = 0.85
"""From here on two strategies of a section are one."""

MAX_STRATEGIES = 500
STEP = 0.1
"""Confidence that a strategy gains each time it is found again."""

MOST_SOURCES = 5
LONGEST = 500
HARMFUL = 3
"""By how many marks a strategy must have done more harm than good to be taken out."""


class Strategy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item of the playbook. ``context`` says when it applies, ``sources`` where it was learned, newest last."""

    id: str
    section: Section
    strategy: str
    context: str = ""
    tools: tuple[str, ...] = ()
    outcome: Literal["success", "failure"] = "success"
    confidence: float = 0.8
    helpful: int = 0
    harmful: int = 0
    neutral: int = 0
    source: Literal["heuristic", "model", "person"] = "heuristic"
    sources: tuple[Provenance, ...] = ()
    timestamp: datetime
    last_seen: datetime | None = None

    @property
    def audiences(self) -> frozenset[Audience]:
        """The audiences that may receive it; an empty set means all. Built-in advice and a person's own words go to
        all. Advice made from a conversation may quote it and stays where it was learned."""
        own = self.source == "person" or (self.source == "heuristic" and self.outcome == "failure")
        return frozenset() if own else frozenset(source.audience for source in self.sources)

    def is_for(self, place: Audience) -> bool:
        """Report whether that audience may receive it."""
        return not self.audiences or place in self.audiences


class AddStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """A new strategy; one that is there already is confirmed instead."""

    section: Section
    strategy: str
    context: str = ""
    tools: tuple[str, ...] = ()
    outcome: Literal["success", "failure"] = "success"
    confidence: float = 0.8
    by: Literal["heuristic", "model"] = "heuristic"


class MarkStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """The turn had the strategy before it, and it was helpful, harmful or neither. ``undone``: it was marked so, and
    that was wrong."""

    id: str
    tag: Tag
    undone: bool = False


class UpdateStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """Better words for a strategy; id and counters stay."""

    id: str
    strategy: str


class MergeStrategies(msgspec.Struct, frozen=True, kw_only=True):
    """Several strategies that say one thing: the first keeps its id and takes the others' counters and sources."""

    ids: tuple[str, ...]
    strategy: str = ""


class RemoveStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy that did harm. One that was more helpful than harmful stays: no single turn takes it out."""

    id: str


PlaybookOperation = AddStrategy | MarkStrategy | UpdateStrategy | MergeStrategies | RemoveStrategy
Playbook = Mapping[str, Strategy]
Changes = dict[str, Strategy | None]
"""Strategies that were added or changed, by id; None for one that is out."""


def strategy_id(section: Section, text: str) -> str:
    """The id of a strategy: by what it said when it was first added, so it is the same on every machine."""
    return f"{_PREFIX[section]}-{key_of('strategy', section, _plain(text))[:8].lower()}"


def apply_delta(
    playbook: Playbook, delta: Iterable[PlaybookOperation], source: Provenance, at: datetime
) -> Changes:
    """Return the changes that a delta makes. An operation has no effect if it names a missing strategy or would remove
    one that helped."""
    book = _PlaybookMerge(playbook, source, at)
    for operation in delta:
        book.take(operation)
    return book.changed


def refine(playbook: Playbook, source: Provenance, at: datetime) -> Changes:
    """Grow and refine: above ``MAX_STRATEGIES`` strategies those that are alike become one, then the least worth go."""
    book = _PlaybookMerge(playbook, source, at)
    if len(book.live()) > MAX_STRATEGIES:
        for group in similar_groups(book.live()):
            book.take(MergeStrategies(ids=group))
        for strategy in sorted(book.live(), key=_retention_order)[
            : max(0, len(book.live()) - MAX_STRATEGIES)
        ]:
            book.drop(strategy.id)
    return book.changed


def similar_groups(strategies: Sequence[Strategy]) -> tuple[tuple[str, ...], ...]:
    """Groups of ids that say one thing, each beginning with the most confident."""
    left = sorted(strategies, key=lambda one: (-one.confidence, -(one.helpful - one.harmful), one.id))
    groups: list[tuple[str, ...]] = []
    while left:
        first, *left = left
        same = [
            one
            for one in left
            if one.section == first.section and one.audiences == first.audiences and _is_similar(one, first)
        ]
        if same:
            groups.append((first.id, *(one.id for one in same)))
            left = [one for one in left if one not in same]
    return tuple(groups)


class _PlaybookMerge:
    """A playbook while a delta is merged into it."""

    def __init__(self, playbook: Playbook, source: Provenance, at: datetime) -> None:
        self._strategies = dict(playbook)
        self._source = source
        self._at = at
        self.changed: Changes = {}

    def live(self) -> list[Strategy]:
        """All of them, in the order of their ids."""
        return [one for _, one in sorted(self._strategies.items())]

    def take(self, operation: PlaybookOperation) -> None:
        """Merge one operation."""
        match operation:
            case AddStrategy():
                self._add(operation)
            case MarkStrategy():
                self._mark(operation)
            case UpdateStrategy(id=id, strategy=text):
                self._change(id, strategy=text[:LONGEST])
            case MergeStrategies(ids=ids, strategy=text):
                self._merge(tuple(dict.fromkeys(ids)), text)
            case RemoveStrategy(id=id):
                one = self._strategies.get(id)
                if one is not None and one.harmful >= one.helpful:
                    self.drop(id)

    def drop(self, id: str) -> None:
        """Take a strategy out; history keeps it."""
        del self._strategies[id]
        self.changed[id] = None

    def _add(self, request: AddStrategy) -> None:
        text = request.strategy.strip()[:LONGEST]
        if not text:
            return
        id = strategy_id(request.section, text)
        known = self._strategies.get(id) or next(
            (one for one in self.live() if self._says(one, request, text)), None
        )
        if known is not None:
            confidence = round(min(1.0, known.confidence + STEP), 4)
            self._change(
                known.id, confidence=confidence, last_seen=self._at, sources=self._with_source(known)
            )
            return
        self._put(
            Strategy(
                id=id,
                section=request.section,
                strategy=text,
                context=request.context[:LONGEST],
                tools=request.tools,
                outcome=request.outcome,
                confidence=request.confidence,
                source=request.by,
                sources=(self._source,),
                timestamp=self._at,
            )
        )

    def _says(self, one: Strategy, request: AddStrategy, text: str) -> bool:
        here = one.is_for(self._source.audience)
        return here and one.section == request.section and similarity(one.strategy, text) >= ALIKE

    def _mark(self, mark: MarkStrategy) -> None:
        one = self._strategies.get(mark.id)
        if one is None:
            return
        count = max(0, getattr(one, mark.tag) + (-1 if mark.undone else 1))
        self._change(mark.id, last_seen=self._at, **{mark.tag: count})
        now = self._strategies[mark.id]
        if now.harmful - now.helpful >= HARMFUL:
            self.drop(mark.id)

    def _merge(self, ids: tuple[str, ...], text: str) -> None:
        found = [self._strategies[id] for id in ids if id in self._strategies]
        if len(found) < 2 or len({one.section for one in found}) > 1:
            return
        first, *others = found
        self._change(
            first.id,
            strategy=text[:LONGEST] or first.strategy,
            helpful=sum(one.helpful for one in found),
            harmful=sum(one.harmful for one in found),
            neutral=sum(one.neutral for one in found),
            confidence=max(one.confidence for one in found),
            tools=tuple(dict.fromkeys(tool for one in found for tool in one.tools)),
            sources=tuple(dict.fromkeys(source for one in found for source in one.sources))[-MOST_SOURCES:],
            last_seen=self._at,
        )
        for one in others:
            self.drop(one.id)

    def _change(self, id: str, **fields: object) -> None:
        if id in self._strategies:
            self._put(msgspec.structs.replace(self._strategies[id], **fields))

    def _put(self, strategy: Strategy) -> None:
        self._strategies[strategy.id] = self.changed[strategy.id] = strategy

    def _with_source(self, known: Strategy) -> tuple[Provenance, ...]:
        return tuple(dict.fromkeys((*known.sources, self._source)))[-MOST_SOURCES:]


def _is_similar(one: Strategy, other: Strategy) -> bool:
    return similarity(one.strategy, other.strategy) >= ALIKE


def _retention_order(one: Strategy) -> tuple[float, datetime, str]:
    """The sort key for removal when there are too many strategies: harmful ones first, then those not seen for
    longest."""
    return (
        one.helpful - one.harmful if one.helpful < one.harmful else 0,
        one.last_seen or one.timestamp,
        one.id,
    )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")
