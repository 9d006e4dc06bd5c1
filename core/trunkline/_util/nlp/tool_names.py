"""Suggests a tool for an unknown name. A pure function; the caller passes the names that may be suggested."""

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


def suggest_tool(requested: str, effects: Mapping[str, str]) -> str | None:
    """Return the name that is similar to the requested one, or None. ``effects`` maps each tool's name to its effect.

    If a tool with a weaker effect is about as similar, that tool is suggested.
    """
    known = {name: _likeness(requested, name) for name in sorted(effects)}
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
