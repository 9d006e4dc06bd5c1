"""Conversations over several requests: signatures across tool calls, and messages of other vendors."""

from typing import Any

import pytest

from trunkline import Message
from trunkline.api.model import (
    Call,
    Finish,
    ModelEvent,
    ModelRequest,
    ReasoningBlock,
    ReasoningDone,
    Text,
)
from trunkline.api.tool import ToolSchema
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_gemini.adapter import GeminiAdapter
from trunkline_gemini.content_request import build_request
from trunkline_gemini.contents import SKIP_SIGNATURE
from trunkline_gemini.settings import GeminiSettings

TOOLS = tuple(ToolSchema(name=name) for name in ("look", "listen"))
MODEL = "gemini-3.8-flash"
PROGRAM = (
    'think:First. ;; say:I look. ;; parallel:look {"at": "sea"} listen {"to": "wind"}'
    ' ;; think:Then. ;; call:look {"at": "sky"} ;; think:Last. ;; quote'
)


def answer_of(events: list[ModelEvent], number: int) -> Message:
    """The assistant message, as the monitor makes it from the events of an answer."""
    return Message(
        id=f"msg_answer_{number}",
        role="assistant",
        content="".join(event.text for event in events if isinstance(event, Text)),
        tool_calls=tuple(event.call for event in events if isinstance(event, Call)),
        reasoning=tuple(event.block for event in events if isinstance(event, ReasoningDone)),
    )


def results_of(answer: Message) -> tuple[Message, ...]:
    return tuple(
        Message(id=f"msg_result_{call.id}", role="tool", content="calm", tool_call_id=call.id, name=call.name)
        for call in answer.tool_calls
    )


@pytest.mark.anyio
async def test_signatures_go_back_on_their_parts_across_tool_calls() -> None:
    """The scripted API checks that each signature is on the part to which it was given."""
    messages: tuple[Message, ...] = (Message(id="msg_1", role="user", content=PROGRAM),)
    async with ScriptedProvider().serving() as provider:
        adapter = GeminiAdapter(GeminiSettings(base_url=provider.address, model=MODEL))
        for number in range(3):
            request = ModelRequest(messages=messages, tools=TOOLS)
            events = [event async for event in adapter.stream(request)]
            answer = answer_of(events, number)
            messages = (*messages, answer, *results_of(answer))
        messages = (*messages, Message(id="msg_2", role="user", content="say:Done."))
        async for _ in adapter.stream(ModelRequest(messages=messages, tools=TOOLS)):
            pass
        await adapter.aclose()
        contents = provider.answer_requests[-1].body["contents"]
    assert answer.content == "look said: calm\nlisten said: calm\nlook said: calm"
    signed = [["thoughtSignature" in part for part in content["parts"]] for content in contents]
    assert signed == [[False], [False, True, False], [False, False], [True], [False], [False, True], [False]]
    assert SKIP_SIGNATURE not in str(contents)
    # the signature of a text comes with an empty text, and goes back with it
    assert contents[5]["parts"][1]["text"] == ""


@pytest.mark.anyio
async def test_messages_of_other_vendors_and_models_are_accepted() -> None:
    """A swap in mid-turn: their blocks are left out, and their calls have the documented signature."""
    program = 'call:look {"at": "sea"} ;; call:listen {} ;; quote'
    messages: tuple[Message, ...] = (Message(id="msg_1", role="user", content=program),)
    async with ScriptedProvider().serving() as provider:
        adapter = GeminiAdapter(GeminiSettings(base_url=provider.address))
        for number, model in enumerate(("gemini-3.8-flash", "gemini-4-argon", "gemini-2.5-pro")):
            request = ModelRequest(messages=messages, tools=TOOLS, model=model)
            events = [event async for event in adapter.stream(request)]
            assert isinstance(events[-1], Finish)
            answer = answer_of(events, number)
            foreign = ReasoningBlock(
                vendor="anthropic", model="m", data={"type": "thinking", "signature": "s"}
            )
            answer = Message(
                id=answer.id,
                role="assistant",
                content=answer.content,
                tool_calls=answer.tool_calls,
                reasoning=(foreign, *answer.reasoning),
            )
            messages = (*messages, answer, *results_of(answer))
        await adapter.aclose()
        bodies = [request.body["contents"] for request in provider.answer_requests]
    assert bodies[1][1]["parts"][0]["thoughtSignature"] == SKIP_SIGNATURE
    assert "thoughtSignature" not in str(bodies[2])
    assert answer.content == "look said: calm\nlisten said: calm"


def block(part: str, **place: Any) -> ReasoningBlock:
    return ReasoningBlock(
        vendor="gcp.gemini", model=MODEL, data={"part": part, **place, "thoughtSignature": "s"}
    )


@pytest.mark.parametrize(
    ("content", "reasoning", "parts"),
    [
        (
            "Calm sea.",
            (block("text", start=5, end=9),),
            [{"text": "Calm "}, {"text": "sea.", "thoughtSignature": "s"}],
        ),
        (
            "Calm.",
            (block("text", start=5, end=5),),
            [{"text": "Calm."}, {"text": "", "thoughtSignature": "s"}],
        ),
        (
            "Calm.",
            (block("thought", text="Yes.", at=0),),
            [{"text": "Yes.", "thought": True, "thoughtSignature": "s"}, {"text": "Calm."}],
        ),
        (
            "Calm. Still.",
            (block("text", start=0, end=5), block("thought", text="", at=5)),
            [
                {"text": "Calm.", "thoughtSignature": "s"},
                {"text": "", "thought": True, "thoughtSignature": "s"},
                {"text": " Still."},
            ],
        ),
        ("", (block("text", start=0, end=0),), []),
    ],
)
def test_each_block_makes_its_part(
    content: str, reasoning: tuple[ReasoningBlock, ...], parts: list[dict[str, Any]]
) -> None:
    """The text is split where the vendor split it; an answer without text and calls is left out."""
    answer = Message(id="msg_2", role="assistant", content=content, reasoning=reasoning)
    user = Message(id="msg_1", role="user", content="x")
    body = build_request(ModelRequest(messages=(user, answer)), MODEL, GeminiSettings())
    found = [one["parts"] for one in body["contents"] if one["role"] == "model"]
    assert found == ([parts] if parts else [])
