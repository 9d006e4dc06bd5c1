"""The chosen sliders, mode, personality and HUD: one small JSON file that a person can read and edit. Pure."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from trunkline_personality.sliders import MODES, PERSONALITIES, SLIDERS

Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
HudMode = Literal["off", "data", "text"]

PERSONALITY = re.compile(r"[A-Z0-9][A-Z0-9_-]{0,63}")
"""The name of a personality: a file ``personalities/NAME.md``."""

BASE = "BASE"


class PersonalityState(msgspec.Struct, frozen=True, kw_only=True):
    """A choice. ``sliders`` holds those that were set; the others are at their defaults.

    ``hud`` is whether the HUD is shown beside the answers (``data``) or printed by the model (``text``).
    ``auto_calibrate`` moves the sliders that nobody set with what a message is about.
    """

    auto_calibrate: bool = False
    hud: HudMode = "off"
    mode: str = ""
    personality: str = ""
    sliders: Mapping[str, Percent] = {}

    def value(self, name: str) -> int:
        """The value of a slider."""
        return self.sliders.get(name, _DEFAULTS[name])

    def with_slider(self, name: str, value: int) -> "PersonalityState":
        """With one slider set."""
        return msgspec.structs.replace(self, sliders={**self.sliders, name: value})

    def with_mode(self, mode: str) -> "PersonalityState":
        """In a mode, which sets some sliders and may bring a personality."""
        return msgspec.structs.replace(
            self,
            mode=mode,
            personality=PERSONALITIES.get(mode, self.personality),
            sliders={**self.sliders, **MODES[mode]},
        )

    def reset(self) -> "PersonalityState":
        """With all sliders at their defaults and in no mode."""
        return msgspec.structs.replace(self, mode="", personality="", sliders={})

    @property
    def is_customized(self) -> bool:
        """Report whether anything was chosen about how to speak."""
        return bool(self.mode or self.personality or self.sliders or self.auto_calibrate)


_DEFAULTS = {slider.name: slider.default for slider in SLIDERS}


def parse_state(text: str) -> PersonalityState:
    """A file's state. Raises ValueError, with what is wrong."""
    if not text.strip():
        return PersonalityState()
    state = msgspec.json.decode(text, type=PersonalityState)
    unknown = [name for name in state.sliders if name not in _DEFAULTS]
    if unknown:
        raise ValueError(f"there is no slider {unknown[0]!r}; there are {', '.join(_DEFAULTS)}")
    if state.mode and state.mode not in MODES:
        raise ValueError(f"there is no mode {state.mode!r}; there are {', '.join(MODES)}")
    if state.personality and not PERSONALITY.fullmatch(state.personality):
        raise ValueError(f"{state.personality!r} is not a valid name of a personality")
    return state


def format_state(state: PersonalityState) -> str:
    """The file's text: one line for each choice, sorted."""
    return msgspec.json.format(msgspec.json.encode(state, order="sorted"), indent=2).decode() + "\n"
