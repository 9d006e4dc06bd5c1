"""Selection of the known facts that a turn receives, and their form for the model. Pure; ``context`` looks them up.

What was found for the message comes first, then the newest facts: "I am vegetarian" has no word in common with "what
shall I cook?". A fact that a later one contradicts is told as what held before it, never by itself.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from trunkline.api.memory import Chunk
from trunkline_learning.fact_chunks import CONTRADICTS, fact_of
from trunkline_learning.facts import Fact
from trunkline_learning.turns import Audience

MAX_FACTS = 5
"""The largest number of facts in a turn's context."""

_LINE = re.compile(r"^\[chunk-[^\]\s]+\] said \S+ in \S+: (.+?)(?: \(before: .+\))?$", re.MULTILINE)


class KnownFact(msgspec.Struct, frozen=True):
    """A fact that holds, and those that held before it as far as they were found."""

    fact: Fact
    before: tuple[Fact, ...] = ()


def select_facts(
    candidates: Iterable[Chunk], newest: Iterable[Chunk], place: Audience
) -> tuple[KnownFact, ...]:
    """The facts to tell in a place, ``MAX_FACTS`` at most: those found for the message, best first, then the newest."""
    chunks = {chunk.id: chunk for chunk in (*candidates, *newest)}
    facts = {id: fact for id, chunk in chunks.items() if (fact := fact_of(chunk, place[0])) is not None}
    mine = {id: fact for id, fact in facts.items() if fact.source.person == place[1]}
    before = {id: _superseded_facts(chunks[id], mine) for id in mine}
    over = {fact.id for earlier in before.values() for fact in earlier}
    order = [id for one in mine for id in _current_facts(one, before) if id not in over]
    return tuple(KnownFact(mine[id], before[id]) for id in dict.fromkeys(order))[:MAX_FACTS]


def render_facts(known: Sequence[KnownFact]) -> str:
    """A line for each fact: where it comes from, what was said, what held before."""
    return "\n".join(_line(one) for one in known)


def parse_fact_texts(context: str) -> tuple[str, ...]:
    """The facts that stood in a context, as ``render_facts`` wrote them."""
    return tuple(_LINE.findall(context))


def _superseded_facts(chunk: Chunk, facts: dict[str, Fact]) -> tuple[Fact, ...]:
    """The facts that this one contradicts and that were said before it."""
    against = (facts.get(link.target_id) for link in chunk.links if link.type == CONTRADICTS)
    said = facts[chunk.id].said_at
    return tuple(fact for fact in against if fact is not None and fact.said_at < said)


def _current_facts(id: str, before: dict[str, tuple[Fact, ...]]) -> list[str]:
    """The fact, or those that hold in its place."""
    return [one for one, earlier in before.items() if any(fact.id == id for fact in earlier)] or [id]


def _line(one: KnownFact) -> str:
    fact = one.fact
    earlier = "; ".join(" ".join(other.text.split()) for other in one.before)
    where = fact.source.conversation or "-"
    line = f"[{fact.id}] said {fact.said_at:%Y-%m-%d} in {where}: {' '.join(fact.text.split())}"
    return f"{line} (before: {earlier})" if earlier else line
