"""The adapter in a running platform: a turn with signatures and tool calls."""

import pytest

from trunkline.api.testing import platform
from trunkline.testing.scripted_provider import ScriptedProvider


@pytest.mark.anyio
async def test_a_turn_sends_the_signatures_back_with_the_results() -> None:
    """Each request of the turn has the signatures of its calls, as the server sent them, and the next turn has none."""
    program = (
        "think:The clock knows. ;; say:I look. ;; parallel:current_time {} current_time {}"
        " ;; call:current_time {} ;; say:Done."
    )
    async with ScriptedProvider().serving() as provider:
        config = {
            "runtime.provider_adapter": "gemini",
            "adapters.gemini.base_url": provider.address,
            "adapters.gemini.model": "gemini-3.8-flash",
            "adapters.gemini.parameters": {"reasoning_effort": "high"},
        }
        async with platform(config=config) as running:
            first = await running.say(program)
            second = await running.say("say:Again.", conversation=first.accepted.conversation)
    assert (first.text, second.text) == ("I look.Done.", "Again.")
    begin, _, after_calls, next_turn = (request.body["contents"] for request in provider.answer_requests)
    answers = [content["parts"] for content in after_calls if content["role"] == "model"]
    assert [["thoughtSignature" in part for part in parts] for parts in answers] == [
        [False, True, False],
        [True],
    ]
    assert "skip_thought_signature_validator" not in str(after_calls)
    assert after_calls[: len(begin)] == begin  # the prompt cache needs the same beginning
    assert "thoughtSignature" not in str(next_turn)
