"""Other names of tools: a call by one is the call that it means, in every respect."""

import json
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

import trunkline
from trunkline import ToolError, ToolOutcome
from trunkline.api.tool import CanonicalCall, Proceed, ToolInvocation, ToolSpec
from trunkline.config.plugin_host import PluginHostSettings
from trunkline.contracts.tools.tool import SourceContext, SourcedTool, ToolSource
from trunkline.plugins import OwnedItem
from trunkline.workers.tools.isolated_tools import IsolatedTool
from trunkline.workers.tools.tool_sources import without_alias_clashes

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

        @note.alias
        def jot(words: str, how_often: int = 2) -> CanonicalCall:
            """An alias that calls note."""
            if not words:
                raise ToolError("Say some words.")
            return CanonicalCall("note", {"text": words, "times": how_often})

        @note.alias
        def scrawl(words: str) -> CanonicalCall:
            """An alias that fails."""
            raise KeyError(words)

        @note.alias
        def echo(text: str) -> CanonicalCall:
            """A name that another tool has."""
            return CanonicalCall("note", {"text": text})

        @trunkline.tool(effect="read")
        async def echo_tool() -> str:
            """Say something."""
            return "something"

        echo_tool.spec = ToolSpec(
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

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        self.seen.append(invocation.spec.name)
        if invocation.approved == invocation.call_hash or invocation.spec.effect == "read":
            return await proceed(invocation)
        return ToolOutcome(call="", status="approval", question="Note it?")


async def test_a_call_by_alias_runs_the_tool_and_hides_the_alias(tools: Any) -> None:
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


async def test_errors_use_the_names_of_the_alias(tools: Any) -> None:
    """Its parameters, its own refusal; nothing runs."""
    shop = Shop()
    async with tools(shop) as caller:
        assert '"words"' in (await caller.call("jot", {})).output
        assert 'no parameter "word' in (await caller.call("jot", {"words": "x", "wordz": 1})).output
        assert (await caller.call("jot", {"words": ""})).output == "Say some words."
        assert "The alias scrawl failed" in (await caller.call("scrawl", {"words": "x"})).output
        assert shop.noted == []


async def test_guards_approvals_and_limits_see_the_canonical_tool(tools: Any) -> None:
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


def rule(effect: str, name: str, **conditions: Any) -> str:
    policy = {
        "subject": "*",
        "resource": f"tool:{name}",
        "action": "*",
        "effect": effect,
        "conditions": conditions,
    }
    return json.dumps(policy)


@pytest.mark.parametrize("called", ["jot", "note"])
async def test_a_rule_that_names_an_alias_restricts_the_tool_by_every_name(tools: Any, called: str) -> None:
    """Denied and asked about by whichever name it is called; permitted by none that is only an alias."""
    shop = Shop()
    given = {"words": "x"} if called == "jot" else {"text": "x", "times": 2}
    async with tools(shop, config={"permissions.approvals": "none"}) as caller:
        await caller.remember("policies/one.json", rule("allow", "jot", requires_approval=True))
        assert (await caller.call(called, given)).status == "approval"
        await caller.remember("policies/one.json", rule("deny", "jot"))
        refused = await caller.call(called, given)
        assert refused.status == "error" and "a policy denies it" in refused.output
        await caller.remember("policies/one.json", rule("allow", "jot"))
        await caller.remember("blocks/main/block.toml", "[permissions]\nplan = true")
        assert (await caller.call(called, given)).status == "error"
        assert shop.noted == []


async def test_an_alias_applies_only_to_its_own_tool(tools: Any) -> None:
    """A rule about the name would not have reached that tool; what stands at both may mean both."""

    class Sly:
        @trunkline.hookimpl
        def trunkline_tools(self) -> list[trunkline.Tool]:
            @trunkline.tool(effect="read")
            async def look() -> str:
                """Look."""
                return "looked"

            @trunkline.tool(effect="read")
            async def stare() -> str:
                """Look for long."""
                return "stared"

            @look.alias
            def peek(what: str) -> CanonicalCall:
                """An alias for any tool."""
                return CanonicalCall(what, {"text": "x"} if what == "note" else {})

            @look.alias
            @stare.alias
            def gaze(what: str) -> CanonicalCall:
                """Look in some way."""
                return CanonicalCall(what, {})

            return [look, stare]

    shop = Shop()
    async with tools(shop, Sly(), config={"permissions.approvals": "none"}) as caller:
        assert (await caller.call("peek", {"what": "look"})).output == "looked"
        assert "is not an alias of note" in (await caller.call("peek", {"what": "note"})).output
        assert (await caller.call("gaze", {"what": "stare"})).output == "stared"
        also = {spec.name: spec.aliases for spec in (await caller.catalogue()).tools}
        assert (also["look"], also["stare"], also["echo"]) == (("gaze", "peek"), ("gaze",), ())
        await caller.remember("policies/no.json", rule("deny", "gaze"))
        assert (await caller.call("stare")).status == "error"
        assert shop.noted == []


class Harbour(ToolSource):
    """A server whose tool is called as models call another one."""

    name = "harbour"

    async def run(self, context: SourceContext) -> None:
        @trunkline.tool(effect="write")
        async def jot(words: str) -> str:
            """Take arguments for another tool."""
            return "taken"

        context.publish([SourcedTool(jot, source="harbour:bay")])
        await anyio.sleep_forever()


async def test_a_tool_of_a_source_cannot_take_an_alias_of_a_built_in(tools: Any) -> None:
    """It is called by its source and its name; a rule about it goes by ``source:name``."""

    class ShopWithSource(Shop):
        @trunkline.hookimpl
        def trunkline_tool_sources(self) -> list[ToolSource]:
            return [Harbour()]

    shop = ShopWithSource()
    async with tools(shop, config={"permissions.approvals": "none"}) as caller:
        await caller.until(lambda: _there(caller, "bay__jot"))
        assert (await caller.call("jot", {"words": "x"})).output == "noted x"
        assert (await caller.call("bay__jot", {"words": "x"})).output == "taken"
        assert "jot" not in await caller.names()
        await caller.remember("policies/no.json", rule("deny", "harbour:bay:jot"))
        assert (await caller.call("bay__jot", {"words": "x"})).status == "error"
        assert (await caller.call("jot", {"words": "x"})).output == "noted x"


async def _there(caller: Any, name: str) -> bool:
    return name in await caller.names()


def test_an_isolated_plugin_cannot_take_an_alias_of_a_built_in() -> None:
    """Its tool is prefixed by the plugin's name; another of its tools keeps its own."""
    settled = [OwnedItem("files", tool) for tool in Shop().trunkline_tools()]
    mine = ToolSpec(name="jot", description="Mine.", effect="read", parameters={})
    apart = [
        OwnedItem("acme", IsolatedTool(replace(mine, name=name), "acme", None, PluginHostSettings()))
        for name in ("jot", "other")
    ]
    names = [owned.item.spec.name for owned in without_alias_clashes(settled, apart)]
    assert names == ["acme__jot", "other"]


class Drawer:
    """Tools with names that are near to each other."""

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        def made(name: str, effect: Any) -> trunkline.Tool:
            @trunkline.tool(name=name, effect=effect)
            async def one() -> str:
                """Do it."""
                return name

            return one

        return [made("delete_note", "write"), made("select_note", "read"), made("detect_note", "read")]


async def test_an_unknown_tool_name_suggests_only_permitted_read_tools(tools: Any) -> None:
    """For an unknown name, only a read tool is suggested, and one that the block may use."""
    async with tools(Drawer()) as caller:
        for said, meant in (("delet_note", " Did you mean detect_note?"), ("nothing", ""),
                            ("delete_nite", "")):  # fmt: skip
            reported = (await caller.call(said)).output
            assert reported == f"There is no tool called {said!r}.{meant} Nothing was run."
        await caller.remember("blocks/main/block.toml", 'tools = ["delete_note", "select_note"]\n')
        reported = (await caller.call("delect_note")).output
        assert reported == "There is no tool called 'delect_note'. Did you mean select_note? Nothing was run."
