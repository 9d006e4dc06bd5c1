"""The HUD of a turn: computed from what is known, shown beside the answer or given to the model to print."""

import msgspec

from trunkline import ContextPart, TurnInfo
from trunkline.api.turn import StatusShown
from trunkline_personality.conversation_state import next_step, pending_count, tools_state
from trunkline_personality.hud import Hud, context_usage, dominant_vibe, format_box, gauges, shorten
from trunkline_personality.state import PersonalityState

BYTES_A_TOKEN = 4

PRINT_INSTRUCTION = """Begin your answer with the block LIVEHUD that stands below, character by character,
in a code fence. Then answer."""


def build_hud(state: PersonalityState, turn: TurnInfo, loaded: int) -> Hud:
    """Return the agent's state at the beginning of a turn. Memory is committed before a write is acknowledged, so only
    memories that the agent proposed and nobody has written are pending."""
    said = [message.content for message in turn.history if message.role == "user"]
    used = sum(len(message.content.encode(errors="replace")) for message in turn.history) // BYTES_A_TOKEN
    return Hud(
        session="Active" if said else "New",
        mode=state.mode or state.personality or "BASE",
        sliders=gauges(state),
        past=shorten(said[-1] if said else "", "Nothing was said before"),
        present=shorten(turn.request.message.content, "The message says"),
        future=shorten(next_step(turn.history, turn.request.message.content), "Answer, then wait for you"),
        context=context_usage(used, turn.window),
        tools=tools_state(turn.history),
        loaded=loaded,
        pending=pending_count(turn.history),
        vibe=dominant_vibe(state),
    )


def hud_parts(state: PersonalityState, turn: TurnInfo, loaded: int) -> list[ContextPart | StatusShown]:
    """The HUD for people as data and as a box; in text mode for the model instead, which prints it."""
    hud = build_hud(state, turn, loaded)
    if state.hud == "data":
        return [StatusShown(name="hud", data=msgspec.to_builtins(hud), text=format_box(hud))]
    return [
        ContextPart("hud", PRINT_INSTRUCTION, trusted=True, priority=99, changing=True),
        ContextPart("LIVEHUD", format_box(hud), priority=98, changing=True),
    ]
