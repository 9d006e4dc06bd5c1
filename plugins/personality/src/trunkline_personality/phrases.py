"""The phrases that change an agent's style: "Set humor to 80%", "Max creativity", "Technical mode".

The same for every channel. A message counts only when all of it is such phrases: a person called Max is no command.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from trunkline_personality.phrase_middleware import LONGEST_PHRASE
from trunkline_personality.sliders import MODES, SLIDERS, find_slider
from trunkline_personality.state import HudMode, PersonalityState

TRIGGERS: Mapping[str, tuple[str, ...]] = {
    "RESEARCH": ("deep dive", "deep research", "research this", "analyst mode"),
    "CREATIVE": ("let's brainstorm", "lets brainstorm", "brainstorm", "brainstorm mode", "get creative"),
    "TECHNICAL": ("let's debug", "lets debug", "get technical", "debug mode", "copilot mode"),
    "CONCISE": ("be concise", "be brief", "keep it short", "brief mode", "short answers"),
}
"""Phrases that begin a mode, besides "<mode> mode"."""


@dataclass(frozen=True, slots=True)
class InvalidPhraseError(Exception):
    """It is such a phrase, and asks for what is not possible; the sentence says what is."""

    sentence: str


StateChange = Callable[[PersonalityState], PersonalityState]

_NAMES = "|".join(
    sorted(
        (
            re.escape(name).replace(r"\ ", r"[ _]")
            for slider in SLIDERS
            for name in (slider.name, slider.key.casefold(), *slider.aliases)
        ),
        key=len,
        reverse=True,
    )
)
_THE = r"(?:the |your |my )?"
_SET = re.compile(
    rf"(?:set |turn |put |make ){_THE}({_NAMES})(?: slider)? ?(?:to|at|=|:|up to|down to)? ?(-?\d{{1,5}}) ?%?"
)
_AT = re.compile(rf"{_THE}({_NAMES}) ?(?:at|to|=|:)? ?(-?\d{{1,5}}) ?%")
_MAX = re.compile(
    rf"(?:max(?:imum|imize|imise)?(?: out)?|full) {_THE}({_NAMES})|({_NAMES}) (?:to )?max(?:imum)?"
)
_MIN = re.compile(rf"(?:min(?:imum|imize|imise)?|zero) {_THE}({_NAMES})|({_NAMES}) (?:to )?min(?:imum)?")
_RESET = re.compile(r"reset (?:all |all the |the |your )?sliders?(?: to (?:the )?defaults?)?")
_RESET_ONE = re.compile(rf"reset {_THE}({_NAMES})(?: slider)?(?: to (?:the |its )?default)?")
_MODE = re.compile(
    rf"(?:switch to |go to |enter |use )?{_THE}({'|'.join(MODES)}) mode(?: on)?", re.IGNORECASE
)
_PERSONALITY = re.compile(
    r"(?:use|switch to|load|set) (?:the |your )?personality (?:to |= ?)?[\"']?([a-z0-9][a-z0-9 _-]{0,63})[\"']?"
)
_HUD = re.compile(
    r"(?:set |turn )?(?:the )?(?:live)?hud (?:to )?(on|off|data|text)|(show|hide) (?:the )?(?:live)?hud"
)
_AUTO = re.compile(
    r"(?:turn )?auto[- ]?calibrat(?:e|ion)(?: sliders)? (on|off)|turn (on|off) auto[- ]?calibration"
)
_PIECES = re.compile(r"[,;\n]+|\band\b|(?<=[.!%]) ")


def parse_phrases(text: str) -> tuple[StateChange, ...]:
    """The changes that a message asks for, in order; none when it is about anything else.

    Raises:
        InvalidPhraseError: it asks for a value that no slider has.
    """
    if len(text) > LONGEST_PHRASE:
        return ()
    pieces = [plain for piece in _PIECES.split(text.casefold()) if (plain := _normalized(piece))]
    changes = [_parse_piece(piece) for piece in pieces]
    return tuple(change for change in changes if change) if all(changes) else ()


def is_command(text: str) -> bool:
    """Report whether all of a message is such phrases."""
    try:
        return bool(parse_phrases(text))
    except InvalidPhraseError:
        return True


def _normalized(piece: str) -> str:
    words = " ".join(piece.replace("\u2019", "'").split()).strip(" .!:/")
    return re.sub(r"^(?:please|now|then|can you|could you) |(?: please| now)$", "", words).strip(" ?")


def _parse_piece(piece: str) -> StateChange | None:
    return next((change for read in _READERS if (change := read(piece)) is not None), None)


def _slider(piece: str) -> StateChange | None:
    for pattern, value in ((_SET, None), (_AT, None), (_MAX, 100), (_MIN, 0)):
        found = pattern.fullmatch(piece)
        if found is None:
            continue
        slider = find_slider(next(filter(None, found.groups())))
        if slider is None:
            return None
        amount = int(found[2]) if value is None else value
        if not 0 <= amount <= 100:
            raise InvalidPhraseError(
                f"{slider.name} has the range 0 to 100, so {amount} is not possible. Nothing was changed."
            )
        return _slider_change(slider.name, amount)
    return None


def _slider_change(name: str, amount: int) -> StateChange:
    return lambda state: state.with_slider(name, amount)


def _reset(piece: str) -> StateChange | None:
    if _RESET.fullmatch(piece):
        return PersonalityState.reset
    found = _RESET_ONE.fullmatch(piece)
    slider = find_slider(found[1]) if found else None
    if slider is None:
        return None
    return lambda state: msgspec.structs.replace(
        state, sliders={name: value for name, value in state.sliders.items() if name != slider.name}
    )


def _mode(piece: str) -> StateChange | None:
    found = _MODE.fullmatch(piece)
    said = found[1].upper() if found else next((m for m, words in TRIGGERS.items() if piece in words), None)
    return None if said is None else lambda state: state.with_mode(said)


def _personality(piece: str) -> StateChange | None:
    found = _PERSONALITY.fullmatch(piece)
    if found is None:
        return None
    name = "_".join(found[1].strip().upper().split())
    return lambda state: msgspec.structs.replace(state, personality=name)


def _hud(piece: str) -> StateChange | None:
    found = _HUD.fullmatch(piece)
    return None if found is None else lambda state: _with_values(state, hud=_HUDS[found[1] or found[2]])


def _auto(piece: str) -> StateChange | None:
    found = _AUTO.fullmatch(piece)
    return None if found is None else lambda state: _with_values(state, auto_calibrate="on" in found.groups())


def _with_values(state: PersonalityState, **values: Any) -> PersonalityState:
    return msgspec.structs.replace(state, **values)


_HUDS: Mapping[str, HudMode] = {
    "on": "data", "data": "data", "show": "data", "text": "text", "off": "off", "hide": "off",
}  # fmt: skip

_READERS = (_slider, _reset, _mode, _personality, _hud, _auto)


def apply_changes(state: PersonalityState, changes: Iterable[StateChange]) -> PersonalityState:
    """The state after all changes, in order."""
    for change in changes:
        state = change(state)
    return state
