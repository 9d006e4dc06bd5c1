"""Turns of a real platform: reasoning across a tool call, and one conversation with several vendors."""

import pytest

import trunkline
from trunkline.testing.platform import platform
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

PROGRAM = 'think:Where are boats? ;; say:I look. ;; call:look_out {"at": "sea"} ;; quote'
KEYS = ("DEEPSEEK_API_KEY", "OPENROUTER_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY", "OPENAI_API_KEY")

MODELS = (
    "openai/gpt-5",
    "deepseek/deepseek-v4-pro",
    "openrouter/anthropic/claude-sonnet-4.5",
    "mistral/mistral-medium-latest",
    "llamacpp/qwen3",
    "xai/grok-4",
    "openai/gpt-6-sol",
)


@trunkline.tool(effect="read")
async def look_out(at: str) -> str:
    """Look out of the window.

    Args:
        at: Where to look.
    """
    return f"waves at the {at}"


class Window:
    """A plugin with the tool."""

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        return [look_out]


async def test_a_conversation_continues_across_all_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each vendor's turn reasons, calls a tool and quotes its result, after those of the others.

    The scripted API checks each request by the vendor's rules, the returned reasoning included.
    """
    for key in KEYS:
        monkeypatch.setenv(key, "sk-x")
    with ScriptedProvider() as provider:
        sections = {f"adapters.{model.partition('/')[0]}.base_url": provider.url for model in MODELS}
        config = {"runtime.provider_adapter": "openai", "adapters.openai.api": "responses", **sections}
        conversation = None
        async with platform(plugins=[Window()], config=config) as running:
            for model in MODELS:
                fields = {"conversation": conversation} if conversation else {}
                answer = await running.say(PROGRAM, model=model, **fields)
                conversation = answer.accepted.conversation
                assert answer.ended.reason == "stop", model
                assert "look_out said: waves at the sea" in answer.text
    requests = provider.answer_requests
    assert len(requests) == 2 * len(MODELS)
    first, deepseek, openrouter, last = (requests[number].body for number in (1, 3, 5, 13))
    assert [item["type"] for item in first["input"] if item.get("type") == "reasoning"] == ["reasoning"]
    assert [item["type"] for item in last["input"] if item.get("type") == "reasoning"] == ["reasoning"]
    given = [one["reasoning_content"] for one in deepseek["messages"] if one.get("tool_calls")]
    assert given == ["", "Where are boats?"]
    details = [one for one in openrouter["messages"] if "reasoning_details" in one]
    assert len(details) == 1
