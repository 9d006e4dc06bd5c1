"""Whatever a conversation consists of, the request is one that Anthropic takes, for each kind of model."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline import Message, ToolCall
from trunkline.api.model import ModelRequest, ReasoningBlock, ToolChoice
from trunkline.api.tool import ToolSchema
from trunkline.testing.vendor_apis.anthropic_rules import find_violations
from trunkline.workers.monitor.transcript_repair import repair_transcript
from trunkline_anthropic.message_request import BuiltRequest, build_request
from trunkline_anthropic.settings import AnthropicSettings

MODELS = (
    "claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-5",
    "claude-opus-4-8", "claude-sonnet-4-6", "claude-haiku-4-5", "claude-3-haiku-20240307", "qwen3",
)  # fmt: skip
FORCEABLE = ("claude-opus-5", "claude-opus-4-8", "claude-haiku-4-5", "qwen3")

IDS = st.sampled_from(["call_0", "call_1", "call:2/ü", "", "call_" + "9" * 200])
CALLS = st.builds(
    ToolCall,
    id=IDS,
    name=st.sampled_from(["weather", "no.such tool", "", "x" * 200]),
    arguments=st.sampled_from([{}, {"town": "Ulm"}, {"": '{"town": '}]),
)
BLOCKS = st.builds(
    ReasoningBlock,
    vendor=st.sampled_from(["anthropic", "openai"]),
    model=st.sampled_from(MODELS),
    data=st.sampled_from([
        {"type": "thinking", "thinking": "Hm.", "signature": "EqQ"},
        {"type": "redacted_thinking", "data": "Emw", "after_text": 3},
        {"type": "thinking", "thinking": "", "signature": "EqQ", "after_text": 99, "after_calls": 1},
    ]),
)  # fmt: skip
TEXTS = st.sampled_from(["", " ", "words", "two words \n"])
TOOLS = st.sampled_from([(), (ToolSchema(name="weather"), ToolSchema(name="clock.now", description="Now."))])


@st.composite
def transcripts(draw: st.DrawFn) -> tuple[Message, ...]:
    """Messages in any order, as an import or a hand may have left them, then repaired as the monitor does."""
    made = []
    for number in range(draw(st.integers(1, 10))):
        role: Any = draw(st.sampled_from(["system", "user", "assistant", "tool"]))
        answers = role == "assistant"
        made.append(
            Message(
                id=f"msg_{number}",
                role=role,
                content=draw(TEXTS),
                tool_calls=tuple(draw(st.lists(CALLS, max_size=3))) if answers else (),
                tool_call_id=draw(IDS) if role == "tool" else None,
                error=role == "tool" and draw(st.booleans()),
                reasoning=tuple(draw(st.lists(BLOCKS, max_size=2))) if answers else (),
            )
        )
    return tuple(repair_transcript(made))


def violations(built: BuiltRequest, version: str) -> list[str]:
    headers = {"anthropic-version": version, "x-api-key": "k", **built.headers}
    return [str(violation) for violation in find_violations(headers, built.body)]


@given(
    messages=transcripts(),
    tools=TOOLS,
    model=st.sampled_from(MODELS),
    effort=st.sampled_from([None, "none", "low", "xhigh"]),
    partial=TEXTS,
    max_tokens=st.sampled_from([None, 500, 3000]),
    temperature=st.sampled_from([None, 0.5]),
    base_url=st.sampled_from([None, "http://x"]),
)
def test_every_request_keeps_the_vendors_rules(
    messages: tuple[Message, ...],
    tools: tuple[ToolSchema, ...],
    model: str,
    effort: str | None,
    partial: str,
    max_tokens: int | None,
    temperature: float | None,
    base_url: str | None,
) -> None:
    """Roles, ids, names, results, empty texts, thinking, prefill, cache marks."""
    request = ModelRequest(
        messages=messages,
        tools=tools,
        parameters={} if effort is None else {"reasoning_effort": effort},
        partial=partial,
        max_tokens=max_tokens,
        temperature=temperature,
    )
    built = build_request(request, model, AnthropicSettings(base_url=base_url))
    assert violations(built, "2023-06-01" if base_url else "2026-10-21") == []


@pytest.mark.parametrize("model", FORCEABLE)
@pytest.mark.parametrize("effort", [None, "high"])
def test_a_forced_call_keeps_the_vendors_rules(model: str, effort: str | None) -> None:
    """For the models that can be forced to call a tool."""
    request = ModelRequest(
        messages=(Message(id="m", role="user", content="x"),),
        tools=(ToolSchema(name="weather"),),
        tool_choice=ToolChoice(mode="required"),
        parameters={} if effort is None else {"reasoning_effort": effort},
    )
    assert violations(build_request(request, model, AnthropicSettings()), "2026-10-21") == []
