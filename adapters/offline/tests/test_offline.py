"""The replies of the offline adapter, and the parts of the adapter contract that apply to it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from trunkline import Message, ToolCall
from trunkline.api.model import Call, Finish, ModelRequest, Text
from trunkline.api.tool import ToolSchema
from trunkline.testing.adapter_suite import PROGRAMS, AdapterSuite, Situation, SituationName
from trunkline_offline.adapter import OfflineAdapter
from trunkline_offline.answers import HELP, HOW_TO

pytestmark = pytest.mark.anyio

SEARCH = ToolSchema(
    name="memory_search",
    description="Search memory.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
READ = ToolSchema(
    name="read_file",
    description="Read a file.\n\nWith more words.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "lines": {"type": "array"},
            "deep": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        },
        "required": ["path"],
    },
)
HIT = {"path": "notes/boat.md", "line": 3, "content": "The boat is called Aurora.", "context": ""}


def user(text: str) -> Message:
    return Message(id="msg_u", role="user", content=text)


def after(call: ToolCall, output: str, *, error: bool = False) -> tuple[Message, Message]:
    """Return the conversation after a call and its result."""
    made = Message(id=f"msg_{call.id}", role="assistant", content="", tool_calls=(call,))
    result = Message(
        id=f"msg_{call.id}_r", role="tool", content=output, tool_call_id=call.id, name=call.name, error=error
    )
    return made, result


async def ask(
    *messages: Message, tools: tuple[ToolSchema, ...] = (SEARCH, READ)
) -> tuple[str, list[ToolCall]]:
    events = [e async for e in OfflineAdapter().stream(ModelRequest(messages=messages, tools=tools))]
    assert isinstance(events[-1], Finish)
    text = "".join(event.text for event in events if isinstance(event, Text))
    return text, [event.call for event in events if isinstance(event, Call)]


async def found(question: str, result: Any) -> str:
    """The answer to a question when the search found this."""
    _, [call] = await ask(user(question))
    text, calls = await ask(
        user(question), *after(call, result if isinstance(result, str) else json.dumps(result))
    )
    assert not calls
    return text


async def test_the_words_of_a_question_are_searched_in_memory() -> None:
    """The words that carry meaning are searched for."""
    text, [call] = await ask(user("What is my boat called?"))
    assert (text, call.name, call.arguments) == ("", "memory_search", {"query": "boat called"})


async def test_many_hits_are_requested_when_the_tool_has_a_limit() -> None:
    """Stored conversations must not displace added documents."""
    properties = {**SEARCH.parameters["properties"], "limit": {"type": "integer"}}
    tool = ToolSchema(name=SEARCH.name, parameters={"type": "object", "properties": properties})
    _, [call] = await ask(user("Where is Aurora?"), tools=(tool,))
    assert call.arguments == {"query": "aurora", "limit": 50}


@pytest.mark.parametrize("shape", [[HIT], {"hits": [HIT]}, "notes/boat.md:3: The boat is called Aurora."])
async def test_answers_quote_memory_with_path_and_line(shape: Any) -> None:
    """The passage comes with path and line, and with how to configure a model."""
    text = await found("What is my boat called?", shape)
    assert "> The boat is called Aurora.\n> (notes/boat.md, line 3)" in text
    assert "OPENAI_API_KEY" in text
    assert "[adapters.openai]" in text


async def test_the_best_passage_comes_first_and_conversations_are_left_out() -> None:
    """Passages with more of the words are better; the stored question itself is no answer."""
    own = {"path": "blocks/main/conversations/conv_1.jsonl", "line": 1, "content": "What is my boat called?"}
    other = {"path": "notes/car.md", "line": 1, "content": "The car is called Tin."}
    text = await found("What is my boat called?", [own, other, HIT])
    assert "jsonl" not in text
    assert text.index("Aurora") < text.index("Tin")


async def test_words_not_found_together_are_searched_one_by_one() -> None:
    """A second round searches for the words one by one; what it finds is quoted."""
    question = user("Is the boat called Borealis?")
    _, [first] = await ask(question)
    missed = after(first, "[]")
    _, second = await ask(question, *missed)
    assert [call.arguments["query"] for call in second] == ["borealis", "called", "boat"]
    assert len({first.id, *(call.id for call in second)}) == 4
    made = Message(id="msg_2", role="assistant", content="", tool_calls=tuple(second))
    outputs = ("[]", "[]", json.dumps([HIT]))
    results = [
        Message(id=f"r{n}", role="tool", content=text, tool_call_id=call.id, name=call.name)
        for n, (call, text) in enumerate(zip(second, outputs, strict=True))
    ]
    text, calls = await ask(question, *missed, made, *results)
    assert not calls
    assert "Aurora" in text


async def test_an_empty_search_result_gives_a_hint() -> None:
    """The answer names the words and the command that brings text in."""
    text = await found("Aurora?", "[]")
    assert "aurora" in text
    assert "trunkline memory add" in text


async def test_a_failed_search_is_reported() -> None:
    """The tool's own words reach the person."""
    _, [call] = await ask(user("Where is Aurora?"))
    text, calls = await ask(user("Where is Aurora?"), *after(call, "memory does not answer", error=True))
    assert not calls
    assert "memory does not answer" in text


async def test_a_missing_search_tool_is_reported() -> None:
    """No tool, no call, no pretence."""
    text, calls = await ask(user("Where is Aurora?"), tools=())
    assert not calls
    assert "no search tool" in text


@pytest.mark.parametrize("greeting", ["hello", "Hi!", "Guten Morgen", "help", "What can you do?", "?", "   "])
async def test_a_greeting_gets_a_useful_text(greeting: str) -> None:
    """The text names the possible commands, and the way to set up a model."""
    text, calls = await ask(user(greeting))
    assert not calls
    assert "/tool" in text
    assert "trunkline memory add" in text


async def test_tool_results_of_plugins_are_shown() -> None:
    """Where a phrase became a call of another tool, its result is the answer, in words; memory is not searched."""
    call = ToolCall(id="c", name="personality_set", arguments={"command": "Max humor"})
    result = '{"hud": "off", "mode": "", "auto_calibrate": false, "sliders": {"humor": 100, "verbosity": 28}}'
    text, calls = await ask(user("Max humor"), *after(call, result))
    shown = "```\nhud: off\nauto calibrate: no\nsliders: humor: 100, verbosity: 28\n```"
    assert calls == [] and f"personality_set says:\n\n{shown}" in text
    for plain, reported in (("Done.\nAll of it.", "Done.\nAll of it."), ("[1, 2]", "- 1\n- 2")):
        assert f"```\n{reported}\n```" in (await ask(user("Max humor"), *after(call, plain)))[0]
    refused = (await ask(user("Max humor"), *after(call, "There is no slider.", error=True)))[0]
    assert "personality_set failed:" in refused and "There is no slider." in refused


async def test_a_message_that_steers_the_turn_is_answered_itself() -> None:
    """The last message of a person counts, after any earlier messages."""
    _, [call] = await ask(user("Where is Aurora?"))
    text, calls = await ask(user("Where is Aurora?"), *after(call, "[]"), user("help"))
    assert not calls
    assert "trunkline memory add" in text


class TestContract(AdapterSuite):
    """The contract; most situations need another side, and there is none."""

    counts = False
    lacks = dict.fromkeys([name for name in PROGRAMS if name != "text"], "there is no model and no network")
    sentence = f"{HELP}\n\n{HOW_TO}"

    @asynccontextmanager
    async def situation(self, name: SituationName) -> AsyncIterator[Situation]:
        yield Situation(OfflineAdapter(), ModelRequest(messages=(user("hello"),)))
