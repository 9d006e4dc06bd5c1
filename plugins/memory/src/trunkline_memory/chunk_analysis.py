"""Analyse what several chunks say together and where they disagree, by their words alone. No model, no I/O.

Heuristics: they point to what deserves a look. That two chunks contradict each other is certain only where somebody
said so with a link.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any, Literal

from trunkline.api.memory import Chunk
from trunkline.api.nlp import common_language, concepts, is_negated, sentiment, tokenize, topic_text

Analysis = Literal["synthesis", "comparison", "pattern", "gap"]

INSIGHTS = 5
SIMILARITY_THRESHOLD = 0.5
"""The share of words in common from which two chunks speak of the same thing."""


@dataclass(frozen=True)
class Contradiction:
    """Two chunks that disagree: ``explicit`` by a link, ``negation_conflict`` or ``potential_preference_conflict``."""

    kind: str
    chunks: tuple[str, str]
    texts: tuple[str, str]


@dataclass
class AnalysisResult:
    """The result of an analysis. ``confidence`` is that of the chunks, lowered by every contradiction."""

    analysis_type: Analysis
    synthesis: str
    insights: list[str]
    evidence: list[dict[str, Any]]
    contradictions: list[Contradiction]
    confidence: float
    source_chunks: list[str] = field(default_factory=list)

    def to_tool_result(self) -> dict[str, Any]:
        """As a tool tells it."""
        return asdict(self)


def analyze(
    query: str, chunks: Iterable[Chunk], linked: Iterable[tuple[str, str]], kind: Analysis
) -> AnalysisResult:
    """Weigh chunks against each other. ``linked`` are pairs of ids that contradict each other by link.

    Raises:
        ValueError: a comparison of fewer than two different chunks.
    """
    held = distinct(chunks)
    if kind == "comparison" and len(held) < 2:
        raise ValueError("A comparison needs at least two chunks with different content.")
    found = find_contradictions(held, linked)
    sure = sum(chunk.metadata.confidence for chunk in held) / len(held) if held else 0.0
    return AnalysisResult(
        analysis_type=kind,
        synthesis=_synthesis(query, held, kind),
        insights=_insights(query, held, found, kind)[:INSIGHTS],
        evidence=[
            {"chunk": one.id, "text": one.content, "confidence": one.metadata.confidence} for one in held
        ],
        contradictions=found,
        confidence=round(sure * 0.8 ** len(found), 4),
        source_chunks=[chunk.id for chunk in held],
    )


def distinct(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Chunks that say different things, the surest and then the newest first."""
    ordered = sorted(
        chunks, key=lambda one: (one.metadata.confidence, one.metadata.created_at, one.id), reverse=True
    )
    found: dict[str, Chunk] = {}
    for one in ordered:
        found.setdefault(" ".join(tokenize(one.content)), one)
    return list(found.values())


def find_contradictions(chunks: Sequence[Chunk], linked: Iterable[tuple[str, str]]) -> list[Contradiction]:
    """The pairs that disagree, each once; what a link says comes first."""
    explicit = {frozenset(pair) for pair in linked}
    found: list[Contradiction] = []
    for first, second in combinations(chunks, 2):
        said = frozenset((first.id, second.id)) in explicit
        kind = "explicit" if said else _conflict(first, second)
        if kind:
            found.append(Contradiction(kind, (first.id, second.id), (first.content, second.content)))
    return sorted(found, key=lambda one: one.kind != "explicit")


# Words -------------------------------------------------------------------------------------------------------


def _topics(text: str, language: str) -> dict[str, str]:
    """Return the topics of a text, each with the word that it comes from."""
    found = ((concepts(word, language), word) for word in tokenize(text))
    return {about[0]: word for about, word in found if about}


def _conflict(first: Chunk, second: Chunk) -> str:
    """Describe the apparent contradiction of two chunks; "" when there is none."""
    one, other = first.content, second.content
    language = common_language(one, other)
    ours = frozenset(concepts(topic_text(one, language), language))
    theirs = frozenset(concepts(topic_text(other, language), language))
    if not ours or not theirs:
        return ""
    liking, likes = sentiment(one, language), sentiment(other, language)
    if is_negated(one, language) != is_negated(other, language):
        return "negation_conflict" if _alike(ours, theirs) >= SIMILARITY_THRESHOLD else ""
    if not (liking and likes):
        return ""
    if liking != likes:
        return "potential_preference_conflict" if _alike(ours, theirs) >= SIMILARITY_THRESHOLD else ""
    rivals = len(ours - theirs) == len(theirs - ours) == 1 and bool(ours & theirs)
    return "potential_preference_conflict" if rivals else ""


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


# Telling -----------------------------------------------------------------------------------------------------


def _synthesis(query: str, chunks: Sequence[Chunk], kind: Analysis) -> str:
    if not chunks:
        return f"Nothing is remembered about {query!r}."
    if kind == "comparison":
        return "\n".join(f"{chunk.id}: {_first(chunk)}" for chunk in chunks)
    if kind == "gap":
        missing = _missing(query, chunks)
        return (
            f"No chunk mentions: {', '.join(missing)}."
            if missing
            else "Every word of the question is mentioned."
        )
    if kind == "pattern":
        return "; ".join(_recurring(chunks)) or "Nothing occurs more than once."
    return " ".join(_first(chunk) for chunk in chunks[:INSIGHTS])


def _insights(
    query: str, chunks: Sequence[Chunk], contradictions: Sequence[Contradiction], kind: Analysis
) -> list[str]:
    lines = [f"{one.kind}: {one.texts[0]!r} against {one.texts[1]!r}" for one in contradictions]
    if kind == "comparison":
        lines += _compared(chunks)
    elif kind == "pattern":
        lines += _recurring(chunks)
    elif kind == "gap":
        lines += [f"No chunk mentions {word}." for word in _missing(query, chunks)]
        lines += [
            f"Unsure ({one.metadata.confidence:g}): {_first(one)}"
            for one in chunks
            if one.metadata.confidence < 0.5
        ]
    else:
        lines += [f"{chunk.type}: {_first(chunk)}" for chunk in chunks]
    return lines


def _compared(chunks: Sequence[Chunk]) -> list[str]:
    language = common_language(*(chunk.content for chunk in chunks))
    spoken = [_topics(chunk.content, language) for chunk in chunks]
    shared = frozenset.intersection(*(frozenset(one) for one in spoken))
    lines = [f"All mention: {_listed(spoken[0], shared)}."] if shared else []
    for chunk, ours in zip(chunks, spoken, strict=True):
        alone = frozenset(ours).difference(*(other for other in spoken if other is not ours))
        if alone:
            lines.append(f"Only {chunk.id} mentions: {_listed(ours, alone)}.")
    return lines


def _listed(spoken: dict[str, str], stems: Iterable[str]) -> str:
    return ", ".join(sorted(spoken[stem] for stem in stems)[:8])


def _recurring(chunks: Sequence[Chunk]) -> list[str]:
    language = common_language(*(chunk.content for chunk in chunks))
    said = (word for chunk in chunks for word in _topics(chunk.content, language).values())
    words = Counter(word for word in said if len(word) > 2)
    tags = Counter(tag.casefold() for chunk in chunks for tag in set(chunk.tags))
    types = Counter(chunk.type for chunk in chunks)
    found = [(f"tag {name}", count) for name, count in tags.items()]
    found += [(f"type {name}", count) for name, count in types.items()] + list(words.items())
    often = sorted(((count, name) for name, count in found if count > 1), key=lambda one: (-one[0], one[1]))
    return [f"{name} in {count} of {len(chunks)} chunks" for count, name in often[:INSIGHTS]]


def _missing(query: str, chunks: Sequence[Chunk]) -> list[str]:
    texts = [f"{one.content} {' '.join(one.tags)}" for one in chunks]
    language = common_language(query, *texts)
    said = {about for text in texts for about in concepts(text, language)}
    asked = ((word, concepts(word, language)) for word in dict.fromkeys(tokenize(query)) if len(word) > 2)
    return [word for word, about in asked if about and about[0] not in said]


def _first(chunk: Chunk) -> str:
    line = " ".join(chunk.content.split())
    return line if len(line) <= 200 else line[:197] + "..."
