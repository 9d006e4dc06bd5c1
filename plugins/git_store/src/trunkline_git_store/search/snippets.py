"""The text of a hit: the line, and the lines around it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

from trunkline import MemoryHit
from trunkline.api.store import PassageKind
from trunkline_git_store.search.candidates import PassageCandidate

CONTEXT_LINES = 2
LINE_CHARACTERS = 500

_EPOCH = datetime.fromtimestamp(0, UTC)


def build_hit(one: PassageCandidate, lines: Sequence[str], beginnings: Sequence[str]) -> MemoryHit:
    """The hit that a candidate is, in its best line: that with most of the words, given by how they begin; without any
    the first that says something."""

    def worth(at: int) -> tuple[int, bool, int]:
        return count_matches(lines[at], beginnings), bool(lines[at].strip()), -at

    best = max(range(len(lines)), key=worth, default=0)
    inside = one.kind in ("turn", "chunk", "fact")
    context = with_context(lines, best)[1]
    return MemoryHit(
        path=one.path,
        line=one.line if inside else one.line + best,
        content=excerpt(lines[best], beginnings) if lines else "",
        context=context,
        score=round(one.score, 6),
        kind=cast(PassageKind, one.kind),
        id=one.name,
        page=one.page or None,
        at=_EPOCH + timedelta(microseconds=one.at) if one.at else None,
        speaker=one.speaker,
        confidence=one.confidence,
        conversation=one.conversation,
        why=one.why,
    )


def build_line_hit(path: str, line: int, lines: list[str], best: int, score: float) -> MemoryHit:
    """The hit in the ``best`` of some lines, whose number is ``line``, with what stands around it."""
    content, context = with_context(lines, best)
    return MemoryHit(path=path, line=line, content=content, context=context, score=round(score, 6))


def with_context(lines: Sequence[str], best: int) -> tuple[str, str]:
    """A line, and what stands around it."""
    around = lines[max(0, best - CONTEXT_LINES) : best + CONTEXT_LINES + 1]
    return _cut(lines[best]) if lines else "", "\n".join(_cut(text) for text in around)


def stem_prefix(stem: str) -> str:
    """Return the beginning of the words of a stem: the stem of "city" is "citi"."""
    return stem[:-1] if len(stem) > 3 and stem.endswith("i") else stem


def count_matches(line: str, words: Sequence[str]) -> int:
    """Return the number of the words that occur in a line."""
    folded = line.casefold()
    return sum(word in folded for word in words)


def excerpt(line: str, beginnings: Sequence[str]) -> str:
    """A line, of a long one the part around the first word that was found."""
    folded = line.casefold()
    at = min((place for one in beginnings if (place := folded.find(one)) >= 0), default=0)
    if len(line) <= LINE_CHARACTERS or at < LINE_CHARACTERS / 2:
        return _cut(line)
    start = max(at - LINE_CHARACTERS // 4, 0)
    start = line.find(" ", start, at) + 1 or start
    return "…" + _cut(line[start:])


def _cut(line: str) -> str:
    return line if len(line) <= LINE_CHARACTERS else line[:LINE_CHARACTERS] + "…"
