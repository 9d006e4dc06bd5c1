"""Whatever a conversation consists of, the request is one that Ollama takes."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunkline import Image, Message, ToolCall
from trunkline.api.model import ModelRequest, ReasoningBlock, ResponseFormat, ToolChoice
from trunkline.api.tool import ToolSchema
from trunkline.testing.vendor_apis.ollama_rules import find_violations
from trunkline.workers.monitor.transcript_repair import repair_transcript
from trunkline_ollama.chat_request import chat_body
from trunkline_ollama.settings import OllamaSettings

IDS = st.sampled_from(["call_0", "call_1", "call:2/ü", "", "call_" + "9" * 200])
CALLS = st.builds(
    ToolCall,
    id=IDS,
    name=st.sampled_from(["weather", "no.such tool", "", "x" * 200]),
    arguments=st.sampled_from([{}, {"town": "Ulm"}, {"": '{"town": '}]),
)
BLOCKS = st.builds(
    ReasoningBlock,
    vendor=st.sampled_from(["ollama", "anthropic"]),
    model=st.just("m"),
    data=st.sampled_from([{"thinking": "Hm."}, {"thinking": ""}, {"data": "Emw"}]),
)
TEXTS = st.sampled_from(["", " ", "words", "two words \n"])
TOOLS = st.sampled_from([
    (),
    (ToolSchema(name="weather"), ToolSchema(name="clock.now", parameters={"properties": {"any": True}})),
])  # fmt: skip
IMAGE = Image(media_type="image/png", data=b"\x89PNG")


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
                images=(IMAGE,) if role == "user" and draw(st.booleans()) else (),
                reasoning=tuple(draw(st.lists(BLOCKS, max_size=2))) if answers else (),
            )
        )
    return (*repair_transcript(made), Message(id="msg_last", role="user", content="and now?"))


@given(
    messages=transcripts(),
    tools=TOOLS,
    choice=st.sampled_from(
        [ToolChoice(), ToolChoice(mode="none"), ToolChoice(mode="required", tools=("weather",))]
    ),
    effort=st.sampled_from([None, "none", "on", "high"]),
    wanted=st.sampled_from([None, ResponseFormat(), ResponseFormat(schema={"type": "object"})]),
    max_tokens=st.sampled_from([None, 500]),
    temperature=st.sampled_from([None, 0.5, 1]),
)
def test_every_request_keeps_the_vendors_rules(
    messages: tuple[Message, ...],
    tools: tuple[ToolSchema, ...],
    choice: ToolChoice,
    effort: str | None,
    wanted: ResponseFormat | None,
    max_tokens: int | None,
    temperature: float | None,
) -> None:
    """Roles, results, thinking, images, schemas, options; and nothing that was said is lost."""
    request = ModelRequest(
        messages=messages,
        tools=tools,
        tool_choice=choice,
        response_format=wanted,
        parameters={} if effort is None else {"reasoning_effort": effort},
        max_tokens=max_tokens,
        temperature=temperature,
    )
    body = chat_body(request, "m", OllamaSettings(parameters={"keep_alive": "-1", "num_ctx": 4096}))
    assert find_violations("/api/chat", body) == ()
    sent = "\n\n".join(message["content"] for message in body["messages"])
    assert all(message.content in sent for message in messages)
    images = sum(len(message.get("images", ())) for message in body["messages"])
    assert images == sum(len(message.images) for message in messages)
