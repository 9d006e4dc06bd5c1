"""Facts in what people say: found without a model, by families of words, in statements about themselves.

Questions, requests, quotations and code are passed over: "I would like a summary" is a task and no preference.
"""

import re
from datetime import datetime
from typing import Literal

import msgspec

from trunkline_learning.text import sentences
from trunkline_learning.turns import FinishedTurn, Provenance

FactType = Literal["fact", "preference", "decision", "pattern"]
FACT_TYPES: tuple[FactType, ...] = ("fact", "preference", "decision", "pattern")

MODEL_CONFIDENCE, HEURISTIC = 0.8, 0.6
"""Confidence of facts that a model found, and of those that the word heuristics found."""

DECISION, PREFERENCE, FILE_PATTERN = 0.9, 0.85, 0.9
"""Confidence of statements of these kinds, which people make about themselves and their files."""

LONGEST = 300
"""Letters; what is longer is no statement of one fact."""

MOST = 10
"""Facts from one turn."""


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fact to remember. ``role`` is who said it; ``id`` is the chunk's once it is stored."""

    text: str
    type: FactType
    source: Provenance
    role: Literal["user", "assistant"] = "user"
    said_at: datetime
    confidence: float = HEURISTIC
    by: Literal["words", "model"] = "words"
    id: str = ""


class FactFinding(msgspec.Struct, frozen=True):
    """A fact of a turn, with what it repeats and what it contradicts as far as its finder says so."""

    fact: Fact
    repeats: Fact | None = None
    against: tuple[Fact, ...] = ()


_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
_QUOTE = re.compile(r"^\s*>.*$", re.MULTILINE)
_REQUEST = re.compile(
    r"\b(would like|i'd like|'d like|want (you|to)|like (you|to)|need (you|to)|prefer (you to|that you)|please|"
    r"can you|could you|let's)\b"
    r"|^(i )?(want|wish|need) (a|an|the|some|it|this|that)\b"
)
_UNSURE = re.compile(r"^(if|maybe|perhaps|suppose|imagine|what if|when|unless)\b")
_MINE = r"\b(i|we|my|our|i'm|we're|i've|we've)\b"
_FAMILIES: tuple[tuple[FactType, re.Pattern[str]], ...] = (
    (
        "decision",
        re.compile(
            _MINE + r".*\b(decided|chose|selected|going with|went with|opted for|settled on|concluded)\b"
        ),
    ),
    (
        "pattern",
        re.compile(
            r"\b(usually|often|tends? to|always|typically|generally|frequently|regularly|every time|"
            r"most of the time|whenever)\b"
        ),
    ),
    (
        "preference",
        re.compile(
            r"\b(i|we|he|she|they) (really |do not |don't |also |still )*"
            r"(prefer|like|love|dislike|hate|can't stand)s?\b"
            r"|\b(prefers|likes|loves|dislikes|hates)\b|\b(my|our) favou?rite\b|\bi'd rather\b|\bi would rather\b"
        ),
    ),
    (
        "fact",
        re.compile(
            r"\bmy name is\b|\bcall me\b"
            r"|\b(i am|i'm|we are|we're) (a|an|the|from|based|located|called|not a|\d+|"
            r"vegetarian|vegan|allergic|married|responsible|left-handed|colou?r-?blind)\b"
            r"|\b(works?|working|worked) (as|at|for)\b|\b(is |am |are )?(located|based) in\b"
            r"|\b(live|lives|lived|living) in\b"
            r"|\b(was|were) born\b|\bstudied (at|in)?\b|\bgraduated from\b|\b(i|we) have (\d+|a|an|two|three|four)\b"
            r"|\b(my|our) [\w' -]{2,40} (is|are|has|was) \b"
        ),
    ),
)
_PATH = re.compile(r"(?:^|\s)[\w.*-]*/[\w./*-]*|\*\.\w+|\b[\w-]+\.[a-z]{1,5}\b")
_NOT_A_SUBJECT = re.compile(r"^(this|that|it|there|what|which|who|here)\b")


def extract_facts(turn: FinishedTurn) -> tuple[Fact, ...]:
    """The facts in a person's messages; nothing of what a tool or a model says."""
    if not turn.by_person:
        return ()
    found: dict[str, Fact] = {}
    for message in turn.messages:
        source = msgspec.structs.replace(turn.source, message=message.id)
        for sentence in statements(message.content):
            type = classify(sentence)
            if type is not None:
                fact = Fact(
                    text=sentence,
                    type=type,
                    source=source,
                    said_at=message.created_at,
                    confidence=_confidence(sentence, type),
                )
                found.setdefault(" ".join(sentence.casefold().split()), fact)
    return tuple(found.values())[:MOST]


def _confidence(sentence: str, type: FactType) -> float:
    if type == "pattern" and _PATH.search(sentence):
        return FILE_PATTERN
    return {"decision": DECISION, "preference": PREFERENCE}.get(type, HEURISTIC)


def statements(text: str) -> list[str]:
    """The sentences that may state something: no code, no quotation, no question."""
    plain = _QUOTE.sub(" ", _CODE.sub(" ", text))
    found = [sentence.strip("-*• \t") for sentence in sentences(plain)]
    return [one for one in found if len(one.split()) > 2 and len(one) <= LONGEST and not one.endswith("?")]


def classify(sentence: str) -> FactType | None:
    """Classify a statement by its words; the first matching family decides. None: the statement is not kept."""
    said = " ".join(sentence.casefold().replace("’", "'").split())
    if _REQUEST.search(said) or _UNSURE.search(said):
        return None
    if _NOT_A_SUBJECT.search(said) and not re.search(_MINE, said):
        return None
    return next((type for type, words in _FAMILIES if words.search(said)), None)
