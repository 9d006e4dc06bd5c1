"""The adapter in a running platform: a turn with thinking and a tool call, and a pull."""

import pytest

from trunkline.api.testing import platform
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio


async def test_a_turn_sends_the_thinking_back_with_the_results() -> None:
    """The second request of the turn has the thinking, and the next turn does not."""
    program = "think:The clock knows. ;; say:I look. ;; call:current_time {} ;; say:Done."
    async with ScriptedProvider().serving() as provider:
        config = {
            "runtime.provider_adapter": "ollama",
            "adapters.ollama.base_url": provider.address,
            "adapters.ollama.model": "scripted",
        }
        async with platform(config=config) as running:
            first = await running.say(program)
            second = await running.say("say:Again.", conversation=first.accepted.conversation)
    assert (first.text, second.text) == ("I look.Done.", "Again.")
    begin, after_call, next_turn = (request.body["messages"] for request in provider.answer_requests)
    [answer] = [message for message in after_call if message["role"] == "assistant"]
    assert answer["thinking"] == "The clock knows."
    assert after_call[: len(begin)] == begin
    assert not any("thinking" in message for message in next_turn)


async def test_a_person_sees_the_pull_of_a_model() -> None:
    """As reasoning, before the answer; it is no part of the conversation."""
    async with ScriptedProvider(["status:404", "say:Done."]).serving() as provider:
        config = {
            "adapters.ollama.base_url": provider.address,
            "adapters.ollama.model": "qwen3:8b",
            "adapters.ollama.pull": True,
        }
        async with platform(config=config) as running:
            turn = await running.say("Hi")
    assert turn.text == "Done."
    assert "Pulling qwen3:8b: 50 % of 5.2 GB" in str(turn)
