"""Sliders that follow what a message is about, where the person has switched it on. Pure; guesses by words."""

import re
from collections.abc import Mapping

import msgspec

from trunkline_personality.state import PersonalityState

_TOPICS: tuple[tuple[re.Pattern[str], Mapping[str, int]], ...] = (
    (
        re.compile(r"\b(traceback|stack ?trace|exception|debug|bug|error|fails?|crash(es|ed)?|segfault)\b"),
        {"humor": 20, "directness": 85, "technicality": 80},
    ),
    (
        re.compile(r"\b(brainstorm|ideas?|imagine|invent|what if|name for|slogan)\b"),
        {"creativity": 88, "humor": 60},
    ),
    (
        re.compile(r"\b(research|compare|in depth|deep dive|literature|evidence|sources|analy[sz]e)\b"),
        {"technicality": 78, "verbosity": 50},
    ),
    (
        re.compile(r"^(hi|hello|hey|good (morning|evening)|how are you|thanks|lol)\b"),
        {"humor": 65, "technicality": 30},
    ),
)
"""Debugging, brainstorming, deep research, casual talk; the first that fits counts."""

QUICK_QUESTION = 80
"""Characters up to which a question counts as a quick one."""


def calibrate(state: PersonalityState, message: str) -> PersonalityState:
    """The state for this message; what somebody set by hand stays."""
    if not state.auto_calibrate:
        return state
    plain = message.casefold()
    found = next((values for pattern, values in _TOPICS if pattern.search(plain)), None)
    if found is None:
        found = {"verbosity": 20} if len(plain) <= QUICK_QUESTION and plain.rstrip().endswith("?") else {}
    return msgspec.structs.replace(state, sliders={**found, **state.sliders})
