"""Whatever a conversation consists of, the request is one that the Gemini API takes, for each kind of model."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunkline import Message, ToolCall
from trunkline.api.model import ModelRequest, ReasoningBlock, ResponseFormat, ToolChoice
from trunkline.api.tool import ToolSchema
from trunkline.testing.vendor_apis.gemini_rules import find_violations
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest
from trunkline.workers.monitor.transcript_repair import repair_transcript
from trunkline_gemini.content_request import build_request
from trunkline_gemini.contents import SKIP_SIGNATURE
from trunkline_gemini.settings import GeminiSettings

MODELS = (
    "gemini-4-argon", "gemini-3.8-flash", "gemini-3.5-flash-lite", "gemini-3.1-pro-preview",
    "gemini-3-pro-preview", "gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-2.0-flash",
    "gemini-flash-latest",
)  # fmt: skip

IDS = st.sampled_from(["call_0", "call_1", "call:2/ü", "", "call_" + "9" * 200])
CALLS = st.builds(
    ToolCall,
    id=IDS,
    name=st.sampled_from(["weather", "no such tool", "", "1st", "x" * 200]),
    arguments=st.sampled_from([{}, {"town": "Ulm"}, {"": '{"town": '}]),
)
SIGNED = {"thoughtSignature": SKIP_SIGNATURE}
BLOCKS = st.builds(
    ReasoningBlock,
    vendor=st.sampled_from(["gcp.gemini", "anthropic"]),
    model=st.sampled_from(MODELS),
    data=st.sampled_from([
        {"part": "functionCall", "id": "call_0", **SIGNED},
        {"part": "text", "start": 3, "end": 5, **SIGNED},
        {"part": "text", "start": 99, "end": 99, **SIGNED},
        {"part": "thought", "text": "", "at": 2, **SIGNED},
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


@given(
    messages=transcripts(),
    tools=TOOLS,
    choice=st.sampled_from(
        [ToolChoice(), ToolChoice(mode="required", tools=("weather",)), ToolChoice(mode="none")]
    ),
    model=st.sampled_from(MODELS),
    effort=st.sampled_from([None, "none", "minimal", "low", "xhigh"]),
    partial=TEXTS,
    wanted=st.sampled_from([None, ResponseFormat(), ResponseFormat(schema={"type": "object"})]),
)
def test_every_request_keeps_the_vendors_rules(
    messages: tuple[Message, ...],
    tools: tuple[ToolSchema, ...],
    choice: ToolChoice,
    model: str,
    effort: str | None,
    partial: str,
    wanted: ResponseFormat | None,
) -> None:
    """Roles, names, results, empty parts, signatures, thinking, JSON."""
    request = ModelRequest(
        messages=messages,
        tools=tools,
        tool_choice=choice,
        parameters={} if effort is None else {"reasoning_effort": effort},
        partial=partial,
        response_format=wanted,
    )
    body = build_request(request, model, GeminiSettings())
    path = f"/v1beta/models/{model}:streamGenerateContent"
    sent = RecordedRequest(
        method="POST", path=path, headers={"x-goog-api-key": "k"}, body=body, query="alt=sse"
    )
    assert [str(violation) for violation in find_violations(sent)] == []
