"""The HUD of a turn: computed from what is known, shown beside the answer or given to the model to print."""

import msgspec

from trunkline import ContextPart, StatusShown, TurnInfo
from trunkline_personality.conversation_state import future_of, pending_of, tools_of
from trunkline_personality.hud import Hud, box, context_of, gauges, vibe_of, words
from trunkline_personality.state import State

BYTES_A_TOKEN = 4

PRINT = """Begin your answer with the block LIVEHUD that stands below, character by character, in a code fence.
Then answer."""


def hud_of(state: State, turn: TurnInfo, loaded: int) -> Hud:
    """How the agent stands at the beginning of a turn. Every write of memory is committed when it is acknowledged, so
    what is pending are memories that the agent proposed and nobody has written."""
    said = [message.content for message in turn.history if message.role == "user"]
    used = sum(len(message.content.encode(errors="replace")) for message in turn.history) // BYTES_A_TOKEN
    return Hud(
        session="Active" if said else "New",
        mode=state.mode or state.personality or "BASE",
        sliders=gauges(state),
        past=words(said[-1] if said else "", "Nothing was said before"),
        present=words(turn.request.message.content, "The message says"),
        future=words(future_of(turn.history, turn.request.message.content), "Answer, then wait for you"),
        context=context_of(used, turn.window),
        tools=tools_of(turn.history),
        loaded=loaded,
        pending=pending_of(turn.history),
        vibe=vibe_of(state),
    )


def shown(state: State, turn: TurnInfo, loaded: int) -> list[ContextPart | StatusShown]:
    """The HUD for people as data and as a box; in text mode for the model instead, which prints it."""
    hud = hud_of(state, turn, loaded)
    if state.hud == "data":
        return [StatusShown(name="hud", data=msgspec.to_builtins(hud), text=box(hud))]
    return [
        ContextPart("hud", PRINT, trusted=True, priority=99, changing=True),
        ContextPart("LIVEHUD", box(hud), priority=98, changing=True),
    ]
