"""``personality_set``: how an agent speaks, by sliders, modes, personalities, and in the words that people use."""

from typing import Any, Literal

import msgspec

from trunkline import ToolContext, ToolError, tool
from trunkline_personality import state
from trunkline_personality.context_files import CHOICE, GENERAL
from trunkline_personality.memory_file import change
from trunkline_personality.phrases import BadPhrase, applied, parsed
from trunkline_personality.phrases import Change as Step
from trunkline_personality.sliders import MODES, SLIDERS, named
from trunkline_personality.state import PERSONALITY, State

EXAMPLES = '"Set humor to 80%", "Max creativity", "Reset sliders", "Technical mode", "Use personality BASE", "HUD on"'


@tool(
    effect="write",
    idempotent=True,
    free=("command", "slider", "value", "mode", "personality", "hud", "auto_calibrate", "reset"),
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
        *_said(command),
        *_reset(reset),
        *_set(slider, value),
        *_other(mode, personality, hud, auto_calibrate),
    ]
    if not steps:
        raise ToolError(
            f"Say what to change, for example {EXAMPLES}. Nothing was changed.", kind="invalid_arguments"
        )
    general = await _general(context)

    def edit(text: str) -> str:
        before = _read(text) if text.strip() else general
        return state.written(applied(before, steps))

    await _check(context, applied(general, steps).personality)
    return _told(_read(await change(context.memory, CHOICE, edit)))


def _told(now: State) -> dict[str, Any]:
    """A choice with every slider: where it stands, and where it would without the choice."""
    return {
        **msgspec.to_builtins(now),
        "sliders": {one.name: now.value(one.name) for one in SLIDERS},
        "defaults": {one.name: one.default for one in SLIDERS},
    }


async def _general(context: ToolContext) -> State:
    """What a block without a choice of its own begins with."""
    try:
        return _read((await context.memory.read(GENERAL)).content)
    except ToolError:
        return State()


def _read(text: str) -> State:
    try:
        return state.read(text)
    except ValueError as error:
        raise ToolError(
            f"{CHOICE} in memory cannot be understood ({error}). It is for the owner to mend or delete.",
            kind="unsupported",
        ) from error


async def _check(context: ToolContext, personality: str) -> None:
    """Refuse a personality of which there is no file."""
    if personality in ("", state.BASE):
        return
    if not PERSONALITY.fullmatch(personality):
        raise ToolError(
            f"{personality!r} is no name of a personality. Nothing was changed.", kind="invalid_arguments"
        )
    try:
        found = [entry.path.rpartition("/")[2] for entry in await context.memory.list("/personalities")]
    except ToolError:
        found = []
    if f"{personality}.md" not in found:
        names = ", ".join(sorted(name.removesuffix(".md") for name in found if name.endswith(".md")))
        raise ToolError(
            f"There is no personality {personality}. There are: {names or 'none'}. A file "
            f"/personalities/{personality}.md makes one. Nothing was changed.",
            kind="not_found",
        )


def _said(command: str) -> tuple[Step, ...]:
    if not command.strip():
        return ()
    try:
        steps = parsed(command)
    except BadPhrase as bad:
        raise ToolError(bad.sentence, kind="invalid_arguments") from bad
    if not steps:
        raise ToolError(
            f"{command!r} is not understood. Say it like {EXAMPLES}. Nothing was changed.",
            kind="invalid_arguments",
        )
    return steps


def _reset(wished: bool) -> list[Step]:
    return [State.reset] if wished else []


def _set(name: str, value: int | None) -> list[Step]:
    if not name and value is None:
        return []
    slider = named(name)
    if slider is None:
        known = ", ".join(one.name for one in SLIDERS)
        raise ToolError(
            f"There is no slider {name!r}. There are: {known}. Nothing was changed.", kind="not_found"
        )
    if value is None or not 0 <= value <= 100:
        raise ToolError(
            f"Say where {slider.name} is to stand, 0 to 100. Nothing was changed.", kind="invalid_arguments"
        )
    return [lambda state: state.with_slider(slider.name, value)]


def _other(mode: str, personality: str, hud: str, auto: bool | None) -> list[Step]:
    steps: list[Step] = []
    if mode in MODES:
        steps.append(lambda state: state.in_mode(mode))
    values: dict[str, Any] = {"hud": hud or None, "auto_calibrate": auto}
    values["personality"] = "_".join(personality.upper().split()) or None
    chosen = {name: value for name, value in values.items() if value is not None}
    if chosen:
        steps.append(lambda state: msgspec.structs.replace(state, **chosen))
    return steps
