"""LIVEHUD: how an agent stands, as data, and the box that people read. Pure.

``PATTERN`` reads a line of a slider in the box, ``parse_box`` the whole of it; what is drawn is read back the same.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from trunkline_personality.sliders import SLIDERS
from trunkline_personality.state import PersonalityState

CELLS = 20
FULL, EMPTY = "█", "░"
FEWEST, MOST = 3, 9
"""The smallest and the largest number of words in past, present and future."""

Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
ToolsState = Literal["Standby", "Active", "Executing", "Verifying", "Blocked"]
Vibe = Literal["Direct", "Elevated", "Focused", "Creative", "Analytical"]


class Gauge(msgspec.Struct, frozen=True):
    """The value of a slider, and its default."""

    value: Percent
    default: Percent


class Hud(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the HUD. ``context`` is ``Stable``, or the used part of the model's window as ``NN%``."""

    session: Literal["Active", "New"]
    mode: str
    sliders: Mapping[str, Gauge]
    past: str
    present: str
    future: str
    context: str
    tools: ToolsState
    loaded: int
    pending: int
    vibe: Vibe


PATTERN = re.compile(
    rf"^│ (?P<key>[A-Z][A-Za-z]*_[A-Za-z]+) +\[(?P<bar>{FULL}*{EMPTY}*)\] +(?P<value>\d{{1,3}})% "
    r"\(default (?P<default>\d{1,3})%\)$",
    re.MULTILINE,
)
"""A slider's line."""

_FIELD = r"^│ {}: (?P<{}>.*)$"
_HEAD = re.compile(r"^│ Session: (?P<session>Active|New) · Mode: (?P<mode>[A-Z0-9_-]+)$", re.MULTILINE)
_STATE = re.compile(
    r"^│ Context: (?P<context>Stable|\d{1,3}%) · Tools: (?P<tools>\w+)$\n"
    r"^│ Memory: (?P<loaded>\d+) loaded / (?P<pending>\d+) pending write · Vibe: (?P<vibe>\w+)$",
    re.MULTILINE,
)
TOP, BOTTOM = "╭─ LIVEHUD " + "─" * 46, "╰" + "─" * 56


def gauges(state: PersonalityState) -> dict[str, Gauge]:
    """The sliders by their canonical keys."""
    return {slider.key: Gauge(state.value(slider.name), slider.default) for slider in SLIDERS}


def format_box(hud: Hud) -> str:
    """The box as people see it."""
    width = max(map(len, hud.sliders), default=0)
    lines = [
        TOP,
        f"│ Session: {hud.session} · Mode: {hud.mode}",
        *(
            f"│ {key:<{width}} [{format_bar(gauge.value)}] {gauge.value:>3}% (default {gauge.default}%)"
            for key, gauge in hud.sliders.items()
        ),
        f"│ Past: {hud.past}",
        f"│ Present: {hud.present}",
        f"│ Future: {hud.future}",
        f"│ Context: {hud.context} · Tools: {hud.tools}",
        f"│ Memory: {hud.loaded} loaded / {hud.pending} pending write · Vibe: {hud.vibe}",
        BOTTOM,
    ]
    return "\n".join(lines)


def format_bar(value: int) -> str:
    """A value as cells, each of them 5 %."""
    full = min(CELLS, max(0, (value * CELLS + 50) // 100))
    return FULL * full + EMPTY * (CELLS - full)


def parse_box(text: str) -> Hud | None:
    """The HUD in a text that holds its box; None when it holds none."""
    head, state = _HEAD.search(text), _STATE.search(text)
    matches = {
        name: re.search(_FIELD.format(name.title(), name), text, re.MULTILINE) for name in _TEXT_FIELDS
    }
    if head is None or state is None or not all(matches.values()):
        return None
    sliders = {
        found["key"]: {"value": int(found["value"]), "default": int(found["default"])}
        for found in PATTERN.finditer(text)
        if len(found["bar"]) == CELLS
    }
    numbers = {"loaded": int(state["loaded"]), "pending": int(state["pending"])}
    words = {name: found[name] for name, found in matches.items() if found is not None}
    values = {**head.groupdict(), **state.groupdict(), **numbers, **words, "sliders": sliders}
    try:
        return msgspec.convert(values, Hud)
    except msgspec.ValidationError:
        return None


_TEXT_FIELDS = ("past", "present", "future")


def shorten(text: str, otherwise: str) -> str:
    """A text in 3 to 9 words on one line; ``otherwise`` where it has fewer."""
    found = re.findall(r"[\w'’%-]+", text)[:MOST]
    return " ".join(found) if len(found) >= FEWEST else " ".join([*otherwise.split(), *found][:MOST])


def dominant_vibe(state: PersonalityState) -> Vibe:
    """The slider that is furthest above its default says how the agent comes across."""
    above = {
        slider.name: state.value(slider.name) - slider.default for slider in SLIDERS if slider.name in _VIBES
    }
    name = max(above, key=lambda one: above[one])
    return _VIBES[name] if above[name] > 0 else "Focused"


_VIBES: Mapping[str, Vibe] = {
    "directness": "Direct", "humor": "Elevated", "creativity": "Creative", "technicality": "Analytical",
}  # fmt: skip


def context_usage(used: int, window: int) -> str:
    """Return the used part of the window as ``NN%``, or ``Stable`` below half of it."""
    part = min(100, round(100 * used / window)) if window else 0
    return f"{part}%" if part >= 50 else "Stable"
