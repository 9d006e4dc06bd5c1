"""Other names of tools: a call by one is the call that it means, in every respect."""

from typing import Any

import pytest

import trunkline
from trunkline import Meant, ToolError, ToolOutcome

pytestmark = pytest.mark.anyio


class Shop:
    """A tool with other names."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="write")
        async def note(text: str, times: int = 1) -> str:
            """Note a text."""
            self.noted += [text] * times
            return f"noted {text}"

        @note.also
        def jot(words: str, how_often: int = 2) -> Meant:
            """What others call it."""
            if not words:
                raise ToolError("Say some words.")
            return Meant("note", {"text": words, "times": how_often})

        @note.also
        def scrawl(words: str) -> Meant:
            """One that is broken."""
            raise KeyError(words)

        @note.also
        def echo(text: str) -> Meant:
            """A name that another tool has."""
            return Meant("note", {"text": text})

        @trunkline.tool(effect="read")
        async def echo_tool() -> str:
            """Say something."""
            return "something"

        echo_tool.spec = trunkline.ToolSpec(
            name="echo", description="Say it.", effect="read", parameters={"type": "object", "properties": {}}
        )
        return [note, echo_tool]


class Gate:
    """Asks about notes, by the tool's own name."""

    stage = "gate"

    def __init__(self) -> None:
        self.seen: list[str] = []

    @trunkline.hookimpl
    def trunkline_tool_middleware(self) -> list[Any]:
        return [self]

    async def __call__(self, invocation: trunkline.ToolInvocation, proceed: trunkline.Proceed) -> ToolOutcome:
        self.seen.append(invocation.spec.name)
        if invocation.approved == invocation.call_hash or invocation.spec.effect == "read":
            return await proceed(invocation)
        return ToolOutcome(call="", status="approval", question="Note it?")


async def test_a_call_by_another_name_runs_the_tool_and_the_name_is_shown_to_nobody(tools: Any) -> None:
    """With its own parameters and defaults, repaired as those of every call; a tool's own name goes before an alias."""
    shop = Shop()
    async with tools(shop) as caller:
        assert (await caller.call("jot", {"words": "x"})).output == "noted x"
        assert (await caller.call("jot", '{"words": "y", "howOften": "1"}')).output == "noted y"
        assert shop.noted == ["x", "x", "y"]
        assert (await caller.call("echo")).output == "something"
        names = {spec.name for spec in (await caller.catalogue()).tools}
        assert "note" in names
        assert "jot" not in names


async def test_what_is_wrong_is_told_in_the_words_of_the_alias(tools: Any) -> None:
    """Its parameters, its own refusal; nothing runs."""
    shop = Shop()
    async with tools(shop) as caller:
        assert '"words"' in (await caller.call("jot", {})).output
        assert 'no parameter "word' in (await caller.call("jot", {"words": "x", "wordz": 1})).output
        assert (await caller.call("jot", {"words": ""})).output == "Say some words."
        assert (
            "What is meant by scrawl cannot be told" in (await caller.call("scrawl", {"words": "x"})).output
        )
        assert shop.noted == []


async def test_guards_approvals_and_limits_see_the_tool_that_is_meant(tools: Any) -> None:
    """An alias is no way round a rule: a block that may not use the tool may not by another name, and an approval of
    one holds for the other."""
    shop, gate = Shop(), Gate()
    async with tools(shop, gate) as caller:
        asked = await caller.call("jot", {"words": "x"})
        assert (asked.status, gate.seen) == ("approval", ["note"])
        direct = await caller.call("note", {"text": "x", "times": 2})
        assert direct.call_hash == asked.call_hash
        done = await caller.call("jot", {"words": "x"}, approved=asked.call_hash)
        assert (done.status, shop.noted) == ("ok", ["x", "x"])
        await caller.remember("blocks/main/block.toml", 'tools = ["jot", "echo"]')
        refused = await caller.call("jot", {"words": "z"})
        assert refused.status == "error"
        assert "z" not in shop.noted
