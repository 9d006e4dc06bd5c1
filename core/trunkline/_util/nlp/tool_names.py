"""The suggestion of a tool for a name that no tool has. Pure; the caller gives the names that may be
suggested."""

from collections.abc import Mapping
from difflib import SequenceMatcher

EFFECT_ORDER = ("read", "write", "send", "exec")
"""The effects of tools, the weakest first."""

SIMILAR = 0.6
TYPO = 0.85
"""The similarity of names that differ by a typing error. A tool that does more than read is only suggested
from this similarity on, because the effect of the called tool is unknown."""

TIE_MARGIN = 0.1
"""The difference in similarity up to which a name still counts as a candidate; of the candidates the weakest
effect wins."""


def suggest_tool(said: str, effects: Mapping[str, str]) -> str | None:
    """The name that is near to what was said, or None. ``effects`` has the effect of the tool of each name.

    A tool is never told where one of a weaker effect is about as near.
    """
    known = {name: _likeness(said, name) for name in sorted(effects)}
    fitting = {
        name: likeness
        for name, likeness in known.items()
        if likeness >= (TYPO if EFFECT_ORDER.index(effects[name]) else SIMILAR)
    }
    best = max(fitting.values(), default=0.0)
    meant = [name for name, likeness in fitting.items() if likeness >= best - TIE_MARGIN]
    return min(meant, key=lambda name: (EFFECT_ORDER.index(effects[name]), -fitting[name]), default=None)


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()
