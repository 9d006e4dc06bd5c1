"""The adapter in a running platform: a turn with reasoning and a tool call."""

from typing import Any

import pytest

from trunkline.api.testing import platform
from trunkline.testing.scripted_provider import ScriptedProvider

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


@pytest.mark.anyio
async def test_a_turn_sends_the_reasoning_back_with_the_results() -> None:
    """The second request of the turn has the signed block before the call, as the server sent it, and the stored
    conversation has none of it.
    """
    program = "think:The clock knows. ;; say:I look. ;; call:current_time {} ;; say:Done."
    async with ScriptedProvider().serving() as provider:
        config = {
            "runtime.provider_adapter": "bedrock",
            "adapters.bedrock.endpoint_url": provider.address,
            "adapters.bedrock.region": "us-east-1",
            "adapters.bedrock.model": CLAUDE,
            "adapters.bedrock.parameters": {"reasoning_effort": "high"},
        }
        async with platform(config=config) as running:
            first = await running.say(program)
            second = await running.say("say:Again.", conversation=first.accepted.conversation)
    assert (first.text, second.text) == ("I look.Done.", "Again.")
    begin, after_call, next_turn = (
        _unmarked(request.body)["messages"] for request in provider.answer_requests
    )
    [answer] = [message for message in after_call if message["role"] == "assistant"]
    assert [list(block) for block in answer["content"]] == [["reasoningContent"], ["text"], ["toolUse"]]
    assert answer["content"][0]["reasoningContent"]["reasoningText"]["text"] == "The clock knows."
    assert after_call[: len(begin)] == begin
    assert "reasoningContent" not in str(next_turn)


def _unmarked(value: Any) -> Any:
    """The request without cache points, which are not part of the conversation."""
    if isinstance(value, dict):
        return {key: _unmarked(one) for key, one in value.items()}
    return [_unmarked(one) for one in value if "cachePoint" not in one] if isinstance(value, list) else value
