"""Which tool is meant by a name that no tool has. Pure; whoever asks gives the names that may be told."""

from collections.abc import Mapping
from difflib import SequenceMatcher

EFFECT_ORDER = ("read", "write", "send", "exec")
"""The effects of tools, the weakest first."""

SIMILAR = 0.6
TYPO = 0.85
"""How alike names are that differ by a slip of the hand. A tool that does more than read is meant by nothing less:
nobody knows what the one that was called would have done."""

TIE_MARGIN = 0.1
"""By how much a name may be less alike and still be meant as well; of such the weakest is told."""


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
