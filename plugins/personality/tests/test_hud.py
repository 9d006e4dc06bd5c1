"""The HUD and the phrases that people say (RLM-F23..F26)."""

import random
import re

import pytest

from trunkline_personality import state as states
from trunkline_personality.calibration import calibrate
from trunkline_personality.hud import (
    CELLS,
    EMPTY,
    FULL,
    PATTERN,
    Hud,
    context_usage,
    format_bar,
    format_box,
    gauges,
    parse_box,
    shorten,
)
from trunkline_personality.phrases import InvalidPhraseError, apply_changes, is_command
from trunkline_personality.phrases import parse_phrases as said
from trunkline_personality.sliders import MODES, SLIDERS
from trunkline_personality.state import PersonalityState


def after(*messages: str, state: PersonalityState | None = None) -> PersonalityState:
    state = state or PersonalityState()
    for message in messages:
        state = apply_changes(state, said(message))
    return state


def hud_of(state: PersonalityState, **given: object) -> Hud:
    values: dict[str, object] = {
        "session": "Active", "mode": state.mode or "BASE", "sliders": gauges(state), "past": "We met and talked",
        "present": "You ask about tea", "future": "Answer and then wait", "context": "Stable", "tools": "Standby",
        "loaded": 0, "pending": 0, "vibe": "Focused", **given,
    }  # fmt: skip
    return Hud(**values)  # type: ignore[arg-type]


def test_RLM_T18_set_humor_to_80_percent() -> None:
    """The HUD shows 80 with 16 filled cells of 20, and the default 45."""
    drawn = format_box(hud_of(after("Set humor to 80%")))
    line = next(found for found in PATTERN.finditer(drawn) if found["key"] == "Humor_Amp")
    assert (line["value"], line["default"]) == ("80", "45")
    assert (line["bar"].count(FULL), len(line["bar"])) == (16, 20)


def test_RLM_T18_technical_mode_and_reset() -> None:
    """Technical mode is 90/80/15; a reset brings all defaults back."""
    technical = after("Technical mode")
    assert [technical.value(name) for name in ("technicality", "directness", "humor")] == [90, 80, 15]
    assert technical.mode == "TECHNICAL"
    reset = after("Max verbosity", "Reset sliders", state=technical)
    defaults = {
        "verbosity": 28,
        "humor": 45,
        "creativity": 55,
        "morality": 60,
        "directness": 65,
        "technicality": 50,
    }
    assert {slider.name: reset.value(slider.name) for slider in SLIDERS} == defaults
    assert reset.mode == "" and not reset.is_customized


def test_RLM_T18_a_hundred_random_states_are_read_back() -> None:
    """A drawn HUD parses to the same state, and every bar has its 20 cells."""
    dice = random.Random(18)
    alphabet = ["tea", "Grüße", "don't", "80%", "x-y", "Ω"]
    for _ in range(100):
        sliders = {slider.name: dice.randint(0, 100) for slider in SLIDERS if dice.random() < 0.8}
        hud = hud_of(
            PersonalityState(sliders=sliders),
            session=dice.choice(["Active", "New"]),
            mode=dice.choice([*MODES, "BASE", "MY_OWN-2"]),
            past=" ".join(dice.choices(alphabet, k=dice.randint(3, 9))),
            present=" ".join(dice.choices(alphabet, k=dice.randint(3, 9))),
            future=" ".join(dice.choices(alphabet, k=dice.randint(3, 9))),
            context=dice.choice(["Stable", "50%", "100%"]),
            tools=dice.choice(["Standby", "Active", "Executing", "Verifying", "Blocked"]),
            loaded=dice.randint(0, 99),
            pending=dice.randint(0, 99),
            vibe=dice.choice(["Direct", "Elevated", "Focused", "Creative", "Analytical"]),
        )
        drawn = format_box(hud)
        assert parse_box(f"before\n{drawn}\nafter") == hud
        assert [len(line["bar"]) for line in PATTERN.finditer(drawn)] == [CELLS] * 6


def test_a_text_without_the_box_has_no_hud() -> None:
    """An empty text, an incomplete box and invalid values give no HUD."""
    drawn = format_box(hud_of(PersonalityState()))
    assert parse_box("") is None
    assert parse_box("\n".join(drawn.splitlines()[:-3])) is None
    assert parse_box(drawn.replace("Standby", "Dancing")) is None


@pytest.mark.parametrize(
    ("value", "cells"), [(0, 0), (2, 0), (3, 1), (28, 6), (45, 9), (50, 10), (80, 16), (100, 20)]
)
def test_a_cell_is_five_percent(value: int, cells: int) -> None:
    """Rounded to the nearest cell."""
    assert format_bar(value) == FULL * cells + EMPTY * (20 - cells)


def test_each_hud_line_has_three_to_nine_words() -> None:
    """This holds for every message, empty or very long; none of its characters can draw."""
    for text in ("", "Hi", "one two", "a " * 500, "│ Past: x\n╰── </context> y z", "🦊"):
        reported = shorten(text, "Nothing was said before")
        assert 3 <= len(reported.split()) <= 9 and re.search(r"[│╰<\n]", reported) is None


def test_the_context_is_stable_below_half_of_the_window() -> None:
    """The used part is shown from one half on; an unknown window counts as large."""
    assert [context_usage(n, 1000) for n in (0, 494, 500, 999, 5000)] == [
        "Stable",
        "Stable",
        "50%",
        "100%",
        "100%",
    ]
    assert context_usage(10, 0) == "Stable"


@pytest.mark.parametrize(
    ("message", "sliders"),
    [
        ("Set humor to 80%", {"humor": 80}),
        ("please set the Humour slider to 80 %.", {"humor": 80}),
        ("Tech_Depth = 70%", {"technicality": 70}),
        ("creativity at 5%", {"creativity": 5}),
        ("Humor: 80%", {"humor": 80}),
        ("humor 80 %", {"humor": 80}),
        ("turn wit down to 10", {"humor": 10}),
        ("Max verbosity!", {"verbosity": 100}),
        ("minimize humor", {"humor": 0}),
        (
            "Set humor to 10%, max creativity and technical depth to 90%",
            {"humor": 10, "creativity": 100, "technicality": 90},
        ),
        ("Set humor to 10% and max creativity", {"humor": 10, "creativity": 100}),
        ("Set humor to 80%. Set verbosity to 20%.", {"humor": 80, "verbosity": 20}),
    ],
)
def test_phrases_set_sliders(message: str, sliders: dict[str, int]) -> None:
    """The phrases are everyday words, one or several at once."""
    assert after(message).sliders == sliders


@pytest.mark.parametrize(
    "message",
    [
        "Max is my brother", "Tell me a joke about humor", "set the table to 80%", "Research mode is what?", "", " ",
        "reset my password", "I like technical mode", "humor 80", "/etc/hosts", "Set humor to eighty",
        "your personality is great", "personality test", "humor is 80% of life",
        "Set humor to 80% of what it was before, then tell me why", "x" * 10_000, "hud", "What is the HUD?",
    ],
)  # fmt: skip
def test_unrelated_sentences_are_not_commands(message: str) -> None:
    """Only a message of nothing but such phrases changes anything."""
    assert not is_command(message)


@pytest.mark.parametrize("message", ["Set humor to 101%", "humor at -1%", "set tech depth to 99999"])
def test_a_slider_is_limited_to_its_range(message: str) -> None:
    """A value beyond 0 to 100 is refused, and the sentence gives the range."""
    with pytest.raises(InvalidPhraseError) as bad:
        said(message)
    assert "0 to 100" in bad.value.sentence and is_command(message)


def test_every_mode_has_its_phrases() -> None:
    """ "<Mode> mode", and phrases of its own; some bring a personality."""
    for phrase, mode in {
        "Research mode": "RESEARCH", "deep dive": "RESEARCH", "let's brainstorm": "CREATIVE", "Be concise.": "CONCISE",
        "switch to technical mode": "TECHNICAL", "Let’s debug": "TECHNICAL", "Concise mode on": "CONCISE",
    }.items():  # fmt: skip
        chosen = after(phrase)
        assert chosen.mode == mode
        assert all(chosen.value(name) == value for name, value in MODES[mode].items())
    assert after("Research mode").personality == "RESEARCH_ANALYST"


def test_the_other_choices_have_phrases_too() -> None:
    """HUD, personality, calibration, and one slider back to its default."""
    assert after("HUD on").hud == after("show the HUD").hud == "data"
    assert after("hud text").hud == "text" and after("HUD on", "hide hud").hud == "off"
    assert after("Use personality creative director").personality == "CREATIVE_DIRECTOR"
    assert after("auto-calibrate on").auto_calibrate and not after("turn off auto calibration").auto_calibrate
    assert after("max humor", "set verbosity to 9%", "reset humor").sliders == {"verbosity": 9}


def test_five_bands_describe_each_slider() -> None:
    """Every value has a sentence, the five differ, and they change at 21, 41, 61 and 81."""
    for slider in SLIDERS:
        bands = [slider.band(value) for value in range(101)]
        assert len(set(bands)) == 5
        assert [value for value in range(1, 101) if bands[value] != bands[value - 1]] == [21, 41, 61, 81]
    assert len({slider.name for slider in SLIDERS}) == len(SLIDERS)


def test_calibration_moves_only_sliders_that_were_not_set() -> None:
    """When enabled, a message's topic moves the sliders; a value set by hand is kept."""
    auto = PersonalityState(auto_calibrate=True, sliders={"humor": 99})
    debug = calibrate(auto, "I get a Traceback here, why?")
    assert [debug.value(name) for name in ("humor", "directness", "technicality")] == [99, 85, 80]
    assert calibrate(auto, "Let us brainstorm names").value("creativity") == 88
    assert calibrate(auto, "Compare both in depth.").value("verbosity") == 50
    assert calibrate(auto, "What time is it?").value("verbosity") == 20
    assert calibrate(PersonalityState(), "Traceback") == PersonalityState()


def test_the_file_reads_back_and_bad_ones_are_refused() -> None:
    """The file has one setting a line, sorted; an invalid line is an error that names it."""
    chosen = after("Set humor to 80%", "research mode", "HUD on")
    text = states.format_state(chosen)
    assert states.parse_state(text) == chosen and text.endswith("}\n")
    keys = re.findall(r'(?m)^  "(\w+)"', text)
    assert keys == sorted(keys)
    assert states.parse_state("") == PersonalityState()
    for bad in ('{"sliders": {"humor": 101}}', '{"sliders": {"soul": 1}}', "nonsense", '{"mode": "PARTY"}',
                '{"personality": "../../etc"}', '{"hud": "loud"}', "[]"):  # fmt: skip
        with pytest.raises(ValueError):
            states.parse_state(bad)
