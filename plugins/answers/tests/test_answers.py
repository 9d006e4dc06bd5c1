"""Answers of models that are not as they should be: empty ones, and reasoning in their text (MN-F11, MN-F12)."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline import ErrorCode, Message, ToolCall
from trunkline.api.model import (
    Call,
    Finish,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelStatus,
    Operation,
    Reasoning,
    Text,
)
from trunkline.testing.platform import platform
from trunkline.testing.script import Reply, Say, ScriptedRequest
from trunkline.testing.script import answer as reply
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_answers.middleware import AnswerMiddleware
from trunkline_answers.reasoning_markers import ReasoningTags

pytestmark = pytest.mark.anyio

DONE = Finish()


async def checked(
    events: Sequence[ModelEvent], partial: str = "", operation: Operation = "chat"
) -> list[ModelEvent]:
    async def vendor(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for event in events:
            yield event

    request = ModelRequest(
        messages=(Message(id="m", role="user", content="x"),), partial=partial, operation=operation
    )
    async with aclosing(AnswerMiddleware()(request, vendor)) as found:  # type: ignore[type-var]
        return [event async for event in found]


@pytest.mark.parametrize(
    "nothing", [(), (Text(""),), (Text("\n"), Text("  ")), (Reasoning(""),), (ModelStatus("x"),)]
)
async def test_MN_F11_an_empty_answer_is_a_failure(nothing: tuple[ModelEvent, ...]) -> None:
    """Whatever it consists of; nothing of it is shown, so that the request may be repeated."""
    with pytest.raises(ModelError) as empty:
        await checked((*nothing, DONE))
    assert (empty.value.code, empty.value.fault) == (ErrorCode.PROVIDER_ERROR, "bad_response")


@pytest.mark.parametrize(
    "events",
    [
        (Finish(reason="content_filter"),),
        (Finish(reason="max_tokens"),),
        (Reasoning("hm"), DONE),
        (Call(ToolCall(id="1", name="t")), Finish(reason="tool_calls")),
        (Text("\n"), Text("yes"), DONE),
    ],
)
async def test_an_answer_with_a_reason_or_any_content_is_passed_on(events: tuple[ModelEvent, ...]) -> None:
    """What ended it says why there is no text. White space before a text stays."""
    got = await checked(events)
    assert got[-1] == events[-1]
    assert "".join(event.text for event in got if isinstance(event, Text)) == "".join(
        event.text for event in events if isinstance(event, Text)
    )


@given(st.sampled_from(["think", "thinking", "thought"]), st.lists(st.integers(1, 6), max_size=40))
def test_MN_F12_reasoning_in_tags_is_no_text_however_it_is_cut(tag: str, cuts: list[int]) -> None:
    """Only at the beginning of an answer; an answer about tags keeps them."""
    text = f"\n<{tag}>\nIs 1 < 2? </th yes</{tag}>\n\nYes: write <think> and </think>."
    tags, events, at = ReasoningTags(), list[Text | Reasoning](), 0
    for cut in (*cuts, len(text)):
        events += tags.feed(text[at : at + cut])
        at += cut
    events += tags.finish()
    assert "".join(e.text for e in events if isinstance(e, Reasoning)) == "\nIs 1 < 2? </th yes"
    assert "".join(e.text for e in events if isinstance(e, Text)) == "Yes: write <think> and </think>."


@pytest.mark.parametrize(
    ("text", "reasoning", "shown"),
    [
        ("<think>cut in the mid", "cut in the mid", ""),
        ("<think></think>Hello", "", "Hello"),
        ("<thi", "", "<thi"),
        ("<b>bold</b>", "", "<b>bold</b>"),
        ("See <think>this</think>", "", "See <think>this</think>"),
    ],
)
async def test_tags_at_the_edges(text: str, reasoning: str, shown: str) -> None:
    """A cut answer, empty reasoning, other tags and tags inside of a text."""
    got = await checked((Text(text), DONE))
    assert "".join(event.text for event in got if isinstance(event, Reasoning)) == reasoning
    assert "".join(event.text for event in got if isinstance(event, Text)) == shown


async def test_a_continued_answer_is_left_alone() -> None:
    """Its beginning was shown before."""
    assert await checked((Text("<think>"), DONE), partial="Write ") == [Text("<think>"), DONE]


async def test_replies_without_text_are_passed_on() -> None:
    """Vectors, transcripts and speech are no text, and empty texts stand for their parts."""
    events: list[ModelEvent] = [Text(""), Text(""), DONE]
    operations: tuple[Operation, ...] = ("embeddings", "transcription", "speech")
    for operation in operations:
        assert await checked(events, operation=operation) == events


def script(request: ScriptedRequest) -> Reply:
    """Nothing at first, then reasoning in tags, as local models write it."""
    return reply() if not request.again else reply(Say("<think>They greet me.</think>\n\nHello."))


async def test_a_conversation_has_neither_empty_answers_nor_tags() -> None:
    """Failover repeats the empty answer. Without failover the turn ends with an error instead of nothing."""
    with ScriptedProvider(script) as provider:
        config = {**provider.settings, "plugins.failover.first_delay": 0.01}
        async with platform(config=config) as running:
            said = await running.say("hello")
            view = await running.gateway.conversation(said.accepted.conversation)
        assert said.text == view.messages[-1].content == "Hello."
    with ScriptedProvider(script) as provider:
        alone = {**provider.settings, "plugins.disabled": ["trunkline-failover"]}
        async with platform(config=alone) as running:
            assert (await running.say("hello")).ended.code == "provider_error"
