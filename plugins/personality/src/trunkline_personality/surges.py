"""Phrases that turn a slider up for one answer: "go wild", "no sugarcoating", "surge humor". Pure.

They stand within a message that asks for something else. What was chosen stays as it is for the next message.
"""

import re
from collections.abc import Mapping

import msgspec

from trunkline_personality.sliders import SLIDERS
from trunkline_personality.state import PersonalityState

SURGE_VALUE = 95
"""The value of a raised slider for that answer, in percent."""

PHRASES: Mapping[str, tuple[str, ...]] = {
    "verbosity": ("spare no detail", "in full detail", "leave nothing out", "tell me everything"),
    "humor": ("make me laugh", "make it funny", "crack me up", "be hilarious"),
    "creativity": ("go wild", "blue sky", "think outside the box", "surprise me"),
    "morality": ("moral check", "is this right", "ethics first", "weigh the ethics"),
    "directness": ("no sugarcoating", "don't sugarcoat", "give it to me straight", "be brutally honest"),
    "technicality": ("under the hood", "get into the weeds", "expert level", "full technical depth"),
}
"""The phrases of each slider, besides "surge <slider>" and "<slider> surge"."""

_PATTERNS: Mapping[str, re.Pattern[str]] = {
    slider.name: re.compile(
        r"(?<!\w)(?:"
        + "|".join(
            [
                *map(re.escape, PHRASES[slider.name]),
                *(
                    rf"surge {re.escape(name)}|{re.escape(name)} surge"
                    for name in (slider.name, slider.key.casefold(), *slider.aliases)
                ),
            ]
        )
        + r")(?!\w)"
    )
    for slider in SLIDERS
}


def surged_sliders(message: str) -> tuple[str, ...]:
    """The sliders that a message turns up."""
    said = " ".join(message.casefold().replace("’", "'").split())
    return tuple(name for name, pattern in _PATTERNS.items() if pattern.search(said))


def with_surges(state: PersonalityState, message: str) -> PersonalityState:
    """The state for this message alone."""
    up = dict.fromkeys(surged_sliders(message), SURGE_VALUE)
    return msgspec.structs.replace(state, sliders={**state.sliders, **up}) if up else state
