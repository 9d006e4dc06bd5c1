"""The signal of links: what the best hits point at, and what points at them, may be meant as well."""

from collections.abc import Sequence

import apsw

from trunkline_git_store.search.candidates import PassageCandidate

MAX_FOLLOWED = 5
"""The number of best hits whose links are followed."""

SHARE = 0.4
"""The share of a hit's score that a linked passage gets at full strength."""

LinkedPassages = dict[int, tuple[float, str]]
"""A passage, the score that links give it, and which link."""


def linked_passages(connection: apsw.Connection, best: Sequence[PassageCandidate]) -> LinkedPassages:
    """Return the passages that are linked with the best chunks, in either direction."""
    found: LinkedPassages = {}
    for one in best[:MAX_FOLLOWED]:
        for passage, kind, strength in _around(connection, one) if one.name else ():
            score = SHARE * one.score * min(1.0, max(0.0, strength))
            if passage != one.id and score > found.get(passage, (0.0, ""))[0]:
                found[passage] = score, f"{kind} {one.name}"
    return found


def _around(connection: apsw.Connection, one: PassageCandidate) -> list[tuple[int, str, float]]:
    ahead = (
        "SELECT passages.id, links.type, links.strength FROM links "
        "JOIN passages ON passages.name = links.target AND passages.name != '' WHERE links.passage = ?"
    )
    behind = "SELECT passage, type, strength FROM links WHERE target = ?"
    return [
        *connection.execute(f"{ahead} LIMIT 20", (one.id,)),
        *connection.execute(f"{behind} LIMIT 20", (one.name,)),
    ]
