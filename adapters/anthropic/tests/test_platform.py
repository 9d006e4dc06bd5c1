"""The adapter in a running platform: a turn with reasoning and a tool call."""

from typing import Any

import pytest

from trunkline.api.testing import platform
from trunkline.testing.scripted_provider import ScriptedProvider


@pytest.mark.anyio
async def test_a_turn_sends_the_reasoning_back_with_the_results() -> None:
    """The second request of the turn has the signed block before the call, as the server sent it, and the stored
    conversation has none of it.
    """
    program = "think:The clock knows. ;; say:I look. ;; call:current_time {} ;; say:Done."
    async with ScriptedProvider().serving() as provider:
        config = {
            "runtime.provider_adapter": "anthropic",
            "adapters.anthropic.base_url": provider.address,
            "adapters.anthropic.model": "scripted",
            "adapters.anthropic.parameters": {"reasoning_effort": "high"},
        }
        async with platform(config=config) as running:
            first = await running.say(program)
            second = await running.say("say:Again.", conversation=first.accepted.conversation)
    assert (first.text, second.text) == ("I look.Done.", "Again.")
    first_body, second_body, third_body = (_unmarked(request.body) for request in provider.answer_requests)
    begin, after_call, next_turn = (body["messages"] for body in (first_body, second_body, third_body))
    [answer] = [message for message in after_call if message["role"] == "assistant"]
    assert [block["type"] for block in answer["content"]] == ["thinking", "text", "tool_use"]
    assert answer["content"][0]["thinking"] == "The clock knows."
    # The signature holds for what precedes the block, so nothing of it may change.
    assert after_call[: len(begin)] == begin
    assert [first_body[key] for key in ("system", "tools")] == [
        second_body[key] for key in ("system", "tools")
    ]
    assert "thinking" not in str(
        [message["content"] for message in next_turn if message["role"] == "assistant"]
    )


def _unmarked(value: Any) -> Any:
    """The request without the marks for the prompt cache, which are not part of the conversation."""
    if isinstance(value, dict):
        return {key: _unmarked(one) for key, one in value.items() if key != "cache_control"}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value
