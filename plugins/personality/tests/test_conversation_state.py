"""The values that the HUD computes from a conversation, surges, and the etiquette (RLM-F22 to F27)."""

import pytest

from trunkline import BlockConfig, Message, ToolCall
from trunkline.contracts.blocks.messages import MemoryPolicy
from trunkline_personality.context_source import etiquette
from trunkline_personality.conversation_state import next_step, pending_count, proposed_memories, tools_state
from trunkline_personality.sliders import SLIDERS
from trunkline_personality.state import PersonalityState
from trunkline_personality.surges import PHRASES, surged_sliders, with_surges

PROPOSED = "Noted.\n\n[MEMORY_CANDIDATES]\n- Grace lives in Porto\n- She prefers tea\n\nAnything else?"


def user(text: str = "Do it") -> Message:
    return Message(id="u", role="user", content=text)


def says(text: str, *calls: str) -> Message:
    made = tuple(ToolCall(id=one, name="read_file", arguments={}) for one in calls)
    return Message(id="a", role="assistant", content=text, tool_calls=made)


def result(call: str, kind: str = "", name: str = "read_file") -> Message:
    return Message(
        id=call, role="tool", content="…", tool_call_id=call, name=name, error=bool(kind), error_kind=kind
    )


@pytest.mark.parametrize(
    ("history", "tools"),
    [
        ((), "Standby"),
        ((user(), says("Hello")), "Standby"),
        ((user(), says("", "c1"), result("c1"), says("Done")), "Active"),
        ((user(), says("", "c1"), result("c1"), says("Done"), user(), says("Hello")), "Standby"),
        ((user(), says("", "c1", "c2"), result("c1")), "Executing"),
        ((user(), says("", "c1"), result("c1", "outcome_unknown"), says("Hm")), "Verifying"),
        ((user(), says("", "c1"), result("c1", "permission_denied"), says("I may not")), "Blocked"),
        ((user(), says("", "c1"), result("c1", "approval_denied"), says("You said no")), "Blocked"),
        ((user(), says("", "c1"), result("c1", "not_found"), says("Not there")), "Active"),
    ],
)
def test_rlm_f26_tools_are_as_the_last_turn_left_them(history: tuple[Message, ...], tools: str) -> None:
    """RLM-F26: all five states come about: by open calls, refusals, unknown outcomes, use, and rest."""
    assert tools_state(history) == tools


def test_rlm_f26_pending_items_are_proposals_that_were_not_written() -> None:
    """RLM-F26, F27: candidates count until memory is written; a write that failed changes nothing."""
    assert list(proposed_memories(PROPOSED)) == ["Grace lives in Porto", "She prefers tea"]
    proposed = (user(), says(PROPOSED))
    assert pending_count(proposed) == 2 and pending_count(()) == 0
    assert pending_count((*proposed, user(), result("c1", "permission_denied", "remember"))) == 2
    assert pending_count((*proposed, user(), result("c1", name="remember"))) == 0
    assert pending_count((user("[MEMORY_CANDIDATES]\n- mine"), says("no list"))) == 0


@pytest.mark.parametrize(
    ("history", "message", "future"),
    [
        ((), "Fix the test, then deploy the shop to production.", "deploy the shop to production"),
        ((user(), says("Done. Next, I will write the release notes.")), "Good", "write the release notes"),
        ((user(), says("Plan:\n- [x] build\n- [ ] run the tests\n- [ ] ship")), "ok", "run the tests"),
        ((), "What is the capital of Portugal?", "Answer: What is the capital of Portugal"),
        ((), "Thanks", ""),
    ],
)
def test_rlm_f26_next_steps_are_taken_from_the_conversation(
    history: tuple[Message, ...], message: str, future: str
) -> None:
    """RLM-F26: the message's own next step, else the announced one, an open task, or the question."""
    assert next_step(history, message) == future


def test_rlm_f24_surge_phrases_turn_a_slider_up_for_one_answer() -> None:
    """RLM-F24: each slider has its phrases, within a longer message; the chosen settings are unchanged."""
    for slider in SLIDERS:
        for phrase in (*PHRASES[slider.name], f"surge {slider.name}", f"{slider.key} surge"):
            assert surged_sliders(f"Tell me of tea, {phrase.upper()}!") == (slider.name,), phrase
    chosen = PersonalityState(sliders={"humor": 3})
    assert with_surges(chosen, "Make me laugh about tea").value("humor") == 95 and chosen.value("humor") == 3
    assert with_surges(chosen, "Tell me about tea") is chosen
    assert surged_sliders("The resurge humorously went wildly") == ()


def test_rlm_f27_an_agent_that_may_not_write_proposes() -> None:
    """RLM-F27: claims are marked always; candidates are asked for where the block writes no memory."""
    writing = etiquette(BlockConfig())
    assert "[Fact]" in writing and "[MEMORY_CANDIDATES]" not in writing and "read and written" in writing
    reading = etiquette(BlockConfig(memory=MemoryPolicy(write_layers=())))
    assert "[MEMORY_CANDIDATES]" in reading and "read, not written" in reading
    assert "neither" in etiquette(BlockConfig(memory=MemoryPolicy(enabled=False)))
