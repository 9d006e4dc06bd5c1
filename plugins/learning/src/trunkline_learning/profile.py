"""The person's profile, learned turn by turn. Pure: a state and a turn make the next state.

Nothing is ever counted twice and no history is read again: the state holds the last turn that was counted.
"""

import re
from datetime import datetime

import msgspec

from trunkline_learning.text import split_list, split_words
from trunkline_learning.turns import FinishedTurn

ALPHA = 0.15
"""Weight of the newest message in each moving average."""

SHORT, LONG = 50, 200
"""Letters: a person who writes less wants it short, one who writes more likes detail."""

DECAY, BOOST, BOOST_MOST, TOP_DOMAINS, FAINTEST = 0.95, 0.1, 0.3, 5, 0.05
MOST_TOOLS = 10
SHOWN_AFTER = 5
LOW, HIGH, EXPERT = 0.4, 0.6, 0.7

_DOMAINS = {
    "python": "python pip pytest django flask pandas numpy asyncio venv mypy ruff pydantic uv",
    "javascript": "javascript typescript node npm react vue jsx tsx webpack eslint deno bun",
    "devops": "docker kubernetes k8s ci cd pipeline terraform ansible helm nginx systemd deploy deployment linux",
    "aws": "aws s3 ec2 lambda iam cloudformation dynamodb bedrock sqs cloudwatch",
    "databases": "sql postgres postgresql mysql sqlite mongodb redis query schema index migration join",
}
_DOMAIN_OF = {word: domain for domain, words in _DOMAINS.items() for word in words.split()}

_TECHNICAL = _DOMAIN_OF.keys() | split_list(
    """api async thread mutex compiler latency throughput regex json yaml http tcp tls ssh git commit
    branch merge refactor function class method variable stack heap recursion algorithm cache endpoint
    schema exception traceback container"""
)
_ABSTRACT = split_list(
    """why concept idea architecture design principle theory pattern strategy approach tradeoff trade-off
    general overview compare meaning vision philosophy model"""
)
_CONCRETE = split_list(
    "file line run command fix test print example code show path install error rename copy open"
)
_IMPERATIVES = split_list(
    """add fix write show make run create delete remove change update list find explain give tell open
    check summarize refactor test build install read rename move convert translate"""
)
_DIRECT = re.compile(r"\b(just|only|directly|briefly|quickly|short|concise|straight)\b")
_POLITE = re.compile(
    r"\b(please|could you|would you|would you mind|i was wondering|maybe|perhaps|if possible|kindly)\b"
)

INTENTS = (
    ("search", "find search look where grep locate"),
    ("read", "read show open view cat print display"),
    ("write", "write create add draft compose generate"),
    ("edit", "edit change update modify refactor rename replace"),
    ("debug", "fix debug error bug fail fails failing broken crash"),
    ("run", "run execute start test install build deploy"),
    ("explain", "explain why how what describe understand compare"),
    ("remember", "remember note recall forget remind"),
)
"""The eight intents that tool use is counted for; the first one that fits."""


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """A field the person works in; ``score`` is from 0 to 1."""

    name: str
    score: float
    last_seen: datetime


class ToolCount(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a tool for one intent: uses, and uses without a failure."""

    success: int = 0
    total: int = 0


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The profile of a person's way of working. The four scales range from 0 to 1 and begin at 0.5."""

    created_at: datetime
    last_updated: datetime
    last_turn: str = ""
    last_conversation: str = ""
    interaction_count: int = 0
    verbosity: float = 0.5
    directness: float = 0.5
    technical_level: float = 0.5
    abstraction: float = 0.5
    top_domains: tuple[Domain, ...] = ()
    tool_patterns: dict[str, dict[str, ToolCount]] = {}


def update_profile(profile: Profile, turn: FinishedTurn) -> Profile:
    """The profile after one more turn; unchanged when that turn is the last one counted, or no person's."""
    if not turn.by_person or not turn.task.strip() or turn.source.turn == profile.last_turn:
        return profile
    said = turn.task
    words = split_words(said)
    return Profile(
        created_at=profile.created_at,
        last_updated=turn.at,
        last_turn=turn.source.turn,
        last_conversation=turn.source.conversation,
        interaction_count=profile.interaction_count + 1,
        verbosity=_smooth(profile.verbosity, _verbosity(said)),
        directness=_smooth(profile.directness, _directness(said, words)),
        technical_level=_smooth(profile.technical_level, min(1.0, len(_TECHNICAL.intersection(words)) / 3)),
        abstraction=_smooth(profile.abstraction, _abstraction(words)),
        top_domains=_domains(profile.top_domains, words, turn.at),
        tool_patterns=_tools(profile.tool_patterns, turn, words),
    )


def describe_profile(profile: Profile) -> str:
    """The profile in words for the model; "" before ``SHOWN_AFTER`` interactions."""
    if profile.interaction_count < SHOWN_AFTER:
        return ""
    lines = [
        _scale(profile.verbosity, "prefers short answers", "likes detailed answers"),
        _scale(profile.directness, "is polite and indirect: offer options", "is direct: come to the point"),
        _level(profile.technical_level),
        _scale(profile.abstraction, "wants concrete steps and examples", "thinks in concepts and design"),
    ]
    if profile.top_domains:
        lines.append("works with " + ", ".join(domain.name for domain in profile.top_domains))
    lines += [_habit(intent, tools) for intent, tools in sorted(profile.tool_patterns.items())]
    text = "\n".join(f"- {line}" for line in lines if line)
    return f"<profile>\n{text}\n</profile>" if text else ""


def _smooth(old: float, new: float) -> float:
    return round((1 - ALPHA) * old + ALPHA * new, 4)


def _verbosity(text: str) -> float:
    return min(1.0, max(0.0, (len(text) - SHORT) / (LONG - SHORT)))


def _directness(text: str, words: list[str]) -> float:
    begins = bool(words) and words[0] in _IMPERATIVES
    direct, polite = bool(_DIRECT.search(text.casefold())), bool(_POLITE.search(text.casefold()))
    return min(1.0, max(0.0, 0.5 + 0.3 * begins + 0.2 * direct - 0.4 * polite))


def _abstraction(words: list[str]) -> float:
    abstract, concrete = len(_ABSTRACT.intersection(words)), len(_CONCRETE.intersection(words))
    return 0.5 if abstract + concrete == 0 else abstract / (abstract + concrete)


def _domains(known: tuple[Domain, ...], words: list[str], at: datetime) -> tuple[Domain, ...]:
    hits: dict[str, int] = {}
    for word in words:
        if word in _DOMAIN_OF:
            hits[_DOMAIN_OF[word]] = hits.get(_DOMAIN_OF[word], 0) + 1
    old = {domain.name: domain for domain in known}
    new = []
    for name in old.keys() | hits.keys():
        score = (old[name].score if name in old else 0.0) * DECAY + min(BOOST_MOST, BOOST * hits.get(name, 0))
        seen = at if name in hits else old[name].last_seen
        new.append(Domain(name=name, score=round(min(1.0, score), 4), last_seen=seen))
    kept = [domain for domain in new if domain.score > FAINTEST]
    return tuple(sorted(kept, key=lambda domain: (-domain.score, domain.name))[:TOP_DOMAINS])


def _intent(words: list[str]) -> str | None:
    return next((name for name, hints in INTENTS if set(hints.split()).intersection(words)), None)


def _tools(
    known: dict[str, dict[str, ToolCount]], turn: FinishedTurn, words: list[str]
) -> dict[str, dict[str, ToolCount]]:
    intent = _intent(words)
    if intent is None or not turn.tools:
        return known
    counts = dict(known.get(intent, {}))
    for tool in turn.tools:
        old = counts.get(tool.name, ToolCount())
        counts[tool.name] = ToolCount(success=old.success + (not tool.failed), total=old.total + 1)
    most = sorted(counts.items(), key=lambda pair: (-pair[1].total, pair[0]))[:MOST_TOOLS]
    return {**known, intent: dict(most)}


def _scale(value: float, low: str, high: str) -> str:
    return low if value < LOW else high if value > HIGH else ""


def _level(value: float) -> str:
    if value >= EXPERT:
        return "is an expert: use the terms of the field, leave out the basics"
    return _scale(value, "is new to technical matters: explain terms", "knows the technical basics")


def _habit(intent: str, tools: dict[str, ToolCount]) -> str:
    good = [name for name, count in tools.items() if count.total >= 3 and count.success / count.total >= 0.7]
    return f"for {intent} tasks {', '.join(good[:3])} worked well" if good else ""
