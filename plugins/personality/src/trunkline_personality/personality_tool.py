"""``personality_set``: how an agent speaks, by sliders, modes, personalities, and in the words that people use."""

from typing import Any, Literal

import msgspec

from trunkline import ToolContext, ToolError, tool
from trunkline.api.memory import update_text
from trunkline_personality import state
from trunkline_personality.context_files import CHOICE, DEFAULT_CHOICE
from trunkline_personality.phrases import InvalidPhraseError, apply_changes, parse_phrases
from trunkline_personality.phrases import StateChange as Step
from trunkline_personality.sliders import MODES, SLIDERS, find_slider
from trunkline_personality.state import PERSONALITY, PersonalityState

EXAMPLES = '"Set humor to 80%", "Max creativity", "Reset sliders", "Technical mode", "Use personality BASE", "HUD on"'


@tool(
    effect="write",
    idempotent=True,
    unbound_params=("command", "slider", "value", "mode", "personality", "hud", "auto_calibrate", "reset"),
)
async def personality_set(
    context: ToolContext,
    command: str = "",
    slider: str = "",
    value: int | None = None,
    mode: Literal["", "RESEARCH", "CREATIVE", "TECHNICAL", "CONCISE"] = "",
    personality: str = "",
    hud: Literal["", "off", "data", "text"] = "",
    auto_calibrate: bool | None = None,
    reset: bool = False,
) -> dict[str, Any]:
    """Change how you speak in this block from the next message on, when the person asks for it.

    Args:
        command: What the person said, such as "Set humor to 80%", "Max creativity", "Reset sliders", "Technical mode".
        slider: verbosity, humor, creativity, morality, directness or technicality.
        value: Where that slider is to stand, 0 to 100.
        mode: A mode, which sets several sliders.
        personality: The name of a file in /personalities, such as RESEARCH_ANALYST; it is layered on BASE.
        hud: data shows the HUD beside your answers, text has you print it, off neither.
        auto_calibrate: Whether sliders that nobody set follow what a message is about.
        reset: All sliders to their defaults, before anything else that is asked for here.
    """
    steps = [
        *_phrase_changes(command),
        *_reset_changes(reset),
        *_slider_changes(slider, value),
        *_other_changes(mode, personality, hud, auto_calibrate),
    ]
    if not steps:
        raise ToolError(
            f"Say what to change, for example {EXAMPLES}. Nothing was changed.", kind="invalid_arguments"
        )
    general = await _default_choice(context)

    def edit(text: str) -> str:
        before = _parse_choice(text) if text.strip() else general
        return state.format_state(apply_changes(before, steps))

    await _require_personality(context, apply_changes(general, steps).personality)
    return _describe_choice(_parse_choice(await update_text(context.memory, CHOICE, edit)))


def _describe_choice(now: PersonalityState) -> dict[str, Any]:
    """A choice with every slider: where it stands, and where it would without the choice."""
    return {
        **msgspec.to_builtins(now),
        "sliders": {one.name: now.value(one.name) for one in SLIDERS},
        "defaults": {one.name: one.default for one in SLIDERS},
    }


async def _default_choice(context: ToolContext) -> PersonalityState:
    """Return the initial choice of a block that has none of its own."""
    try:
        return _parse_choice((await context.memory.read(DEFAULT_CHOICE)).content)
    except ToolError:
        return PersonalityState()


def _parse_choice(text: str) -> PersonalityState:
    try:
        return state.parse_state(text)
    except ValueError as error:
        raise ToolError(
            f"{CHOICE} in memory cannot be parsed ({error}). The owner has to correct or delete it.",
            kind="unsupported",
        ) from error


async def _require_personality(context: ToolContext, personality: str) -> None:
    """Refuse a personality of which there is no file."""
    if personality in ("", state.BASE):
        return
    if not PERSONALITY.fullmatch(personality):
        raise ToolError(
            f"{personality!r} is not a valid name of a personality. Nothing was changed.",
            kind="invalid_arguments",
        )
    try:
        found = [entry.path.rpartition("/")[2] for entry in await context.memory.list("/personalities")]
    except ToolError:
        found = []
    if f"{personality}.md" not in found:
        names = ", ".join(sorted(name.removesuffix(".md") for name in found if name.endswith(".md")))
        raise ToolError(
            f"There is no personality {personality}. There are: {names or 'none'}. A file "
            f"/personalities/{personality}.md creates one. Nothing was changed.",
            kind="not_found",
        )


def _phrase_changes(command: str) -> tuple[Step, ...]:
    if not command.strip():
        return ()
    try:
        steps = parse_phrases(command)
    except InvalidPhraseError as bad:
        raise ToolError(bad.sentence, kind="invalid_arguments") from bad
    if not steps:
        raise ToolError(
            f"{command!r} is not understood. Use a phrase such as {EXAMPLES}. Nothing was changed.",
            kind="invalid_arguments",
        )
    return steps


def _reset_changes(wished: bool) -> list[Step]:
    return [PersonalityState.reset] if wished else []


def _slider_changes(name: str, value: int | None) -> list[Step]:
    if not name and value is None:
        return []
    slider = find_slider(name)
    if slider is None:
        known = ", ".join(one.name for one in SLIDERS)
        raise ToolError(
            f"There is no slider {name!r}. There are: {known}. Nothing was changed.", kind="not_found"
        )
    if value is None or not 0 <= value <= 100:
        raise ToolError(
            f"Give the value of {slider.name}, 0 to 100. Nothing was changed.", kind="invalid_arguments"
        )
    return [lambda state: state.with_slider(slider.name, value)]


def _other_changes(mode: str, personality: str, hud: str, auto: bool | None) -> list[Step]:
    steps: list[Step] = []
    if mode in MODES:
        steps.append(lambda state: state.with_mode(mode))
    values: dict[str, Any] = {"hud": hud or None, "auto_calibrate": auto}
    values["personality"] = "_".join(personality.upper().split()) or None
    chosen = {name: value for name, value in values.items() if value is not None}
    if chosen:
        steps.append(lambda state: msgspec.structs.replace(state, **chosen))
    return steps
