"""Reasoning that goes back to its vendor across a tool call, and that of others, which does not."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from trunkline import Message
from trunkline.api.model import (
    Call,
    ModelEvent,
    ModelRequest,
    Reasoning,
    ReasoningBlock,
    ReasoningDone,
    Text,
)
from trunkline.testing.adapter_suite import request_for
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.chat_completions import ChatCompletions
from trunkline_openai.responses import Responses
from trunkline_openai.settings import VENDOR_SETTINGS, OpenAISettings

pytestmark = pytest.mark.anyio

PROGRAM = 'think:Where are boats? ;; say:I look. ;; call:look {"at": "sea"} ;; say:Calm.'
FOREIGN = ReasoningBlock(vendor="anthropic", model="claude-x", data={"type": "thinking", "signature": "s"})


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as running:
        yield running


async def events_of(adapter: OpenAIAdapter, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in adapter.stream(request)]


def continued(request: ModelRequest, events: list[ModelEvent], *more: ReasoningBlock) -> ModelRequest:
    """The next request of the turn: with the answer, its blocks, and a result of each call."""
    calls = tuple(event.call for event in events if isinstance(event, Call))
    blocks = tuple(event.block for event in events if isinstance(event, ReasoningDone))
    text = "".join(event.text for event in events if isinstance(event, Text))
    answer = Message(id="msg_a", role="assistant", content=text, tool_calls=calls, reasoning=(*more, *blocks))
    results = [
        Message(id=f"msg_r{number}", role="tool", content="waves", tool_call_id=call.id, name=call.name)
        for number, call in enumerate(calls)
    ]
    return msgspec.structs.replace(request, messages=(*request.messages, answer, *results))


async def two_steps(adapter: OpenAIAdapter, request: ModelRequest) -> tuple[list[ModelEvent], str]:
    """The events of the first answer, and the text of the second. The blocks make a trip through the journal."""
    first = await events_of(adapter, request)
    for event in first:
        if isinstance(event, ReasoningDone):
            assert msgspec.json.decode(msgspec.json.encode(event.block), type=ReasoningBlock) == event.block
    second = await events_of(adapter, continued(request, first, FOREIGN))
    await adapter.aclose()
    return first, "".join(event.text for event in second if isinstance(event, Text))


def said(program: str, model: str) -> ModelRequest:
    return msgspec.structs.replace(request_for(program), model=model)


async def test_encrypted_reasoning_comes_back_before_the_call(provider: ScriptedProvider) -> None:
    """OpenAI gets its reasoning items unchanged, directly before the items of the same answer."""
    adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url, api="responses"))
    first, text = await two_steps(adapter, said(PROGRAM, "gpt-5"))
    assert text == "Calm."
    [block] = [event.block for event in first if isinstance(event, ReasoningDone)]
    assert (block.vendor, block.model) == ("openai", "gpt-5")
    asked, again = (request.body for request in provider.answer_requests)
    assert (asked["store"], asked["include"]) == (False, ["reasoning.encrypted_content"])
    kinds = [item.get("type", item.get("role")) for item in again["input"]]
    assert kinds == ["system", "user", "reasoning", "assistant", "function_call", "function_call_output"]
    assert again["input"][2] == block.data["item"]
    assert set(again["input"][2]) == {"id", "type", "summary", "encrypted_content"}


async def test_reasoning_of_another_model_is_left_out(provider: ScriptedProvider) -> None:
    """After a change of the model in mid-turn nobody could decrypt it; the request is accepted without it."""
    adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url, api="responses"))
    request = said(PROGRAM, "gpt-5")
    next_request = continued(request, await events_of(adapter, request))
    await events_of(adapter, msgspec.structs.replace(next_request, model="gpt-6-sol"))
    await adapter.aclose()
    assert "reasoning" not in [item.get("type") for item in provider.answer_requests[1].body["input"]]


async def test_a_changed_item_is_refused_by_the_scripted_api() -> None:
    """The rule works: an item whose summary was changed is not what was sent."""
    provider = ScriptedProvider()
    with pytest.raises(AssertionError, match="could not be verified"):
        async with provider.serving():
            adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url, api="responses"))
            request = said(PROGRAM, "gpt-5")
            first = await events_of(adapter, request)
            for event in first:
                if isinstance(event, ReasoningDone):
                    event.block.data["item"]["summary"][0]["text"] = "other"
            with pytest.raises(Exception, match="could not be verified"):
                await events_of(adapter, continued(request, first))
            await adapter.aclose()


async def test_a_plain_model_is_not_asked_for_encrypted_reasoning(provider: ScriptedProvider) -> None:
    """OpenAI refuses that."""
    adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url, api="responses"))
    await events_of(adapter, said("say:x", "gpt-4.1"))
    await adapter.aclose()
    assert "include" not in provider.answer_requests[0].body


async def test_deepseek_gets_its_reasoning_content_back(provider: ScriptedProvider, monkeypatch: Any) -> None:
    """With every message that has calls, also one of another model, whose field is empty."""
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-x")
    adapter = OpenAIAdapter(VENDOR_SETTINGS["deepseek"](base_url=provider.url))
    first, text = await two_steps(adapter, said(PROGRAM, "deepseek-v4-pro"))
    assert text == "Calm."
    assert "".join(event.text for event in first if isinstance(event, Reasoning)) == "Where are boats?"
    assistant = provider.answer_requests[1].body["messages"][2]
    assert assistant["reasoning_content"] == "Where are boats?"


def test_deepseek_gets_an_empty_field_for_the_calls_of_others() -> None:
    """A swap in mid-conversation is accepted. Without thinking the field is not sent."""
    settings = VENDOR_SETTINGS["deepseek"](model="deepseek-v4-pro")
    request = continued(request_for("x"), [Call(call=_call())], FOREIGN)
    assert (
        ChatCompletions.body(request, "deepseek-v4-pro", settings)["messages"][2]["reasoning_content"] == ""
    )
    plain = msgspec.structs.replace(request, parameters={"reasoning_effort": "none"})
    assert "reasoning_content" not in ChatCompletions.body(plain, "deepseek-v4-pro", settings)["messages"][2]


async def test_openrouter_gets_its_details_back(provider: ScriptedProvider) -> None:
    """Put together from their pieces, with the signature, unchanged."""
    adapter = OpenAIAdapter(VENDOR_SETTINGS["openrouter"](base_url=provider.url))
    model = "anthropic/claude-sonnet-4.5"
    first, text = await two_steps(adapter, said(PROGRAM, model))
    assert text == "Calm."
    [block] = [event.block for event in first if isinstance(event, ReasoningDone)]
    [detail] = block.data["reasoning_details"]
    assert (detail["text"], detail["index"]) == ("Where are boats?", 0)
    assert provider.answer_requests[1].body["messages"][2]["reasoning_details"] == [detail]


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_blocks_of_other_vendors_are_ignored(api: str) -> None:
    """A conversation that began elsewhere has nothing of it in the request."""
    request = continued(request_for("x"), [Call(call=_call())], FOREIGN)
    protocol = ChatCompletions if api == "chat" else Responses
    body = protocol.body(request, "gpt-5", OpenAISettings())
    assert "claude" not in str(body)
    assert "thinking" not in str(body)


def _call() -> Any:
    from trunkline import ToolCall

    return ToolCall(id="call_1", name="look", arguments={"at": "sea"})
