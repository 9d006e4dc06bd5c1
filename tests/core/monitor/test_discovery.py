"""Discovery: a model that is not shown all tools finds, loads and keeps those that it needs (MB-T12, PA-F37)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline.contracts.gateway.messages import ForkTurn
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.contracts.models.adapter import Call, ModelAdapter, ModelRequest
from trunkline.contracts.tools.messages import ToolSpec
from trunkline.contracts.tools.tool import SourceContext, SourcedTool, ToolSource
from trunkline.contracts.turns.feed_messages import ToolEnded
from trunkline.testing.platform import Platform, TurnAnswer, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.workers.monitor.tool_selection import (
    LOADED_TOOLS_KEY,
    ToolSelectionSettings,
    missing_tools,
    select_tools,
    selection_settings,
)

pytestmark = pytest.mark.anyio

META = ["discover_tools", "load_tools"]


def made(name: str, description: str, effect: Any = "read", **more: Any) -> trunkline.Tool:
    """Return a tool that returns its name and its arguments."""

    @trunkline.tool(effect=effect, name=name, **more)
    async def tool(value: str) -> str:
        """Placeholder."""
        return f"{name} got {value}"

    tool.spec = ToolSpec(**{**fields(tool.spec), "description": description})
    return tool


def fields(spec: ToolSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in spec.__struct_fields__}


class DiscoveryPlugin:
    """Some tools, and a model that follows the last message: ``NAME ARGUMENT`` calls a tool."""

    def __init__(self) -> None:
        self.model = ScriptedModel(self.answer)
        self.coming = Coming()

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ModelAdapter]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        return [
            made("everyday", "Do what is done every day.", always_send=True),
            made("weather_forecast", "Tell how the weather will be in a city."),
            made("sendMail", "Send a letter to somebody.", "send"),
            made("start_engine", "Run the motor.", "exec"),
        ]

    @trunkline.hookimpl
    def trunkline_tool_sources(self) -> Sequence[ToolSource]:
        return [self.coming]

    def answer(self, request: ModelRequest) -> Any:
        last = request.messages[-1]
        if last.role != "user":
            return "done"
        name, _, argument = last.content.partition(" ")
        arguments = {
            "discover_tools": {"query": argument},
            "list_tools_available": {},
            "load_tools": {"names": argument.split()},
            "wrong": {"nothing": "fits"},
        }
        call_request = arguments.get(name, {"value": argument} if argument else {"nothing": "fits"})
        return [Call(ToolCall(id="c", name=name, arguments=call_request))]

    def running(self, home: Path, **config: Any) -> Any:
        settings = {
            "runtime.provider_adapter": self.model.name,
            "monitor.discovery_threshold": 3,
            "plugins.disabled": ("trunkline-files", "trunkline-memory", "trunkline-shell", "trunkline-web"),
        }
        return platform(home, plugins=[self], config={**settings, **config})

    def offered(self, request: int = -1) -> list[str]:
        return [tool.name for tool in self.model.requests[request].tools]


class Coming(ToolSource):
    """Tools of a server, which come and go."""

    name = "harbour"

    def __init__(self) -> None:
        self.publish: Callable[[Sequence[trunkline.Tool]], None] = lambda tools: None

    async def run(self, context: SourceContext) -> None:
        self.publish = context.publish
        context.publish([self.tool()])
        await anyio.sleep_forever()

    def tool(self) -> trunkline.Tool:
        return SourcedTool(made("tide", "Tell the tide at a harbour."), source="harbour:sea")


def result(answer: TurnAnswer) -> str:
    return next(event.output for event in answer.events if isinstance(event, ToolEnded))


async def write(running: Platform, path: str, text: str) -> None:
    await running.bus.call(MEMORY_WRITE, WriteMemory(path=path, content=text, actor="owner"))


async def until(holds: Callable[[], Any], seconds: float = 60.0) -> None:
    with anyio.fail_after(seconds):
        while not await holds():  # noqa: ASYNC110 - asked of a platform
            await anyio.sleep(0.05)


async def test_MB_T12_a_model_finds_loads_and_keeps_what_it_needs(tmp_path: Path) -> None:
    """The first request has the everyday tools and the two that find others, no more. Loaded tools are shown behind
    them from the next step on: in later turns, in a fork, and after a restart of everything, in the same order; in
    another conversation they are not."""
    plugin = DiscoveryPlugin()
    async with plugin.running(tmp_path) as running:
        found = await running.say("discover_tools what will the weather be")
        assert plugin.offered(0) == ["everyday", *META]
        assert "- weather_forecast: Tell how the weather will be in a city." in result(found)
        assert "start_engine" not in result(found)
        conversation = found.accepted.conversation
        loaded = await running.say("load_tools weather_forecast tide", conversation=conversation)
        assert result(loaded) == "Loaded for this conversation: weather_forecast, tide."
        shown = ["everyday", *META, "weather_forecast", "tide"]
        assert plugin.offered(-2) == ["everyday", *META] and plugin.offered() == shown
        assert result(await running.say("tide Kiel", conversation=conversation)) == "tide got Kiel"
        fork = await running.answer(
            await running.gateway.fork(
                ForkTurn(turn=loaded.accepted.turn, step=1, content="weather_forecast Rome")
            )
        )
        assert plugin.offered() == shown and result(fork) == "weather_forecast got Rome"
        await running.say("hello there")
        assert plugin.offered(-2) == ["everyday", *META]
    async with plugin.running(tmp_path) as running:
        for one in (conversation, fork.accepted.conversation):
            await running.say("everyday bread", conversation=one)
            assert plugin.offered() == shown


async def test_a_tool_that_was_not_loaded_may_be_called(tmp_path: Path) -> None:
    """A call that fits the schema runs, because permissions do not depend on the shown tools; one that does not fit
    is reported. In both cases the model has the definition from then on."""
    plugin = DiscoveryPlugin()
    async with plugin.running(tmp_path) as running:
        wrong = await running.say("weather_forecast")
        assert '"value"' in result(wrong) and plugin.offered() == ["everyday", *META, "weather_forecast"]
        right = await running.say("tide Kiel")
        assert result(right) == "tide got Kiel" and plugin.offered()[-1] == "tide"
        unknown = await running.say("wether_forecast Rome")
        assert "Did you mean weather_forecast" in result(unknown) and plugin.offered() == ["everyday", *META]


async def test_restricted_tools_are_named_and_not_loaded(tmp_path: Path) -> None:
    """The error has the reason, and what a person could do; neither loading nor calling it bypasses the policy,
    before or after."""
    plugin = DiscoveryPlugin()
    async with plugin.running(tmp_path) as running:
        listed = result(await running.say("discover_tools run the motor"))
        assert "which only a person can change:\n- start_engine: Run the motor. Restricted: " in listed
        assert "trunkline permissions main --allow-shell" in listed
        refused = await running.say("load_tools start_engine")
        assert "start_engine is restricted and was not loaded" in result(refused)
        assert plugin.offered() == ["everyday", *META]
        some = await running.say("load_tools start_engine sendMail nothing_such")
        assert result(some).startswith("Loaded for this conversation: sendMail.\nstart_engine is restricted")
        assert "There is no tool called 'nothing_such'" in result(some)
        assert plugin.offered() == ["everyday", *META, "sendMail"]
        assert "was refused" in result(await running.say("start_engine now"))
        deny = '{"subject": "*", "resource": "tool:harbour:sea:*", "action": "*", "effect": "deny"}'
        tide = await running.say("load_tools tide")
        await write(running, "policies/no-sea.json", deny)
        conversation = tide.accepted.conversation

        async def denied() -> bool:
            return "was refused" in result(await running.say("tide Kiel", conversation=conversation))

        await until(denied)
        assert "The owner's policy no-sea forbids it" in result(await running.say("discover_tools tide"))
        assert "restricted and was not loaded" in result(await running.say("load_tools tide"))


async def test_a_removed_tool_is_announced(tmp_path: Path) -> None:
    """A loaded tool that its server removes is shown no longer, and the model is told so until the tool is back."""
    plugin = DiscoveryPlugin()
    async with plugin.running(tmp_path) as running:
        conversation = (await running.say("load_tools tide")).accepted.conversation
        plugin.coming.publish([])

        async def is_gone() -> bool:
            await running.say("everyday x", conversation=conversation)
            return "tide" not in plugin.offered()

        await until(is_gone)
        reported = [
            message.content
            for message in plugin.model.requests[-1].messages
            if "no longer exist" in message.content
        ]
        assert len(reported) == 1 and "tide" in reported[0]
        assert "There is no tool called 'tide'" in result(
            await running.say("tide Kiel", conversation=conversation)
        )
        assert "tide" not in result(await running.say("discover_tools harbour"))
        plugin.coming.publish([plugin.coming.tool()])

        async def is_back() -> bool:
            await running.say("everyday x", conversation=conversation)
            return "tide" in plugin.offered()

        await until(is_back)


async def test_the_owner_chooses_the_tool_selection(tmp_path: Path) -> None:
    """The choice is made by block.toml, else by preferences.toml, else by the number of tools; a change applies to
    the next message. A small set is shown completely, except for forbidden tools and the tools that describe them."""
    plugin = DiscoveryPlugin()
    async with plugin.running(tmp_path, **{"monitor.discovery_threshold": 1000}) as running:

        async def shown() -> list[str]:
            await running.say("everyday x")
            return plugin.offered()

        everything = await shown()
        assert not {"load_tools", "read_result", "start_engine"} & set(everything)
        assert {"everyday", "weather_forecast", "sendMail", "tide", "discover_tools"} <= set(everything)
        await write(
            running, "preferences.toml", 'discovery = "on"\nalways_send = ["harbour:sea:*", "missing"]'
        )
        assert await shown() == ["tide", *META, "everyday"]
        await write(running, "blocks/main/block.toml", 'always_send = ["sendM*"]')
        assert await shown() == ["sendMail", *META, "everyday"]
        await write(running, "blocks/main/block.toml", 'discovery = "off"')
        assert await shown() == everything
        listed = result(await running.say("list_tools_available"))
        assert "Available (" in listed and "- tide: Tell the tide" in listed and "run programs: no" in listed


async def test_a_plugin_may_load_tools(tmp_path: Path) -> None:
    """A successful tool loads others with ``context.load``; a failed one loads none."""
    plugin = DiscoveryPlugin()

    class Skills:
        @trunkline.hookimpl
        def trunkline_tools(self) -> list[trunkline.Tool]:
            @trunkline.tool(effect="read", always_send=True)
            async def skill(context: trunkline.ToolContext, value: str) -> str:
                """Open a skill."""
                context.load(["tide", "nothing_such"])
                if value == "bad":
                    raise trunkline.ToolError("No.")
                return "opened"

            return [skill]

    settings = {"runtime.provider_adapter": plugin.model.name, "monitor.discovery_threshold": 3}
    async with platform(tmp_path, plugins=[plugin, Skills()], config=settings) as running:
        await running.say("skill bad")
        assert "tide" not in plugin.offered()
        await running.say("skill good")
        assert plugin.offered()[-1] == "tide"


def spec(name: str, **more: Any) -> ToolSpec:
    return ToolSpec(name=name, description="d", parameters={"type": "object"}, effect="read", **more)


def test_tool_selection_follows_from_the_transcript() -> None:
    """The order is that of the catalogue, then of loading; a name of no tool, or that is not text, is skipped."""
    specs = (spec("a"), spec("b", category="always-send"), spec("c"), spec("d", source="mcp:x"))
    own = (spec("discover_tools"), spec("load_tools"), spec("read_result"))
    reported = [
        Message(
            id="1",
            role="assistant",
            content="",
            tool_calls=(ToolCall(id="1", name="c"), ToolCall(id="2", name="?")),
        ),
        Message(
            id="2", role="tool", content="", metadata={LOADED_TOOLS_KEY: ["a", 7, "b", "zz", "read_result"]}
        ),
        Message(id="3", role="user", content="", metadata={LOADED_TOOLS_KEY: ["d"]}),
        Message(id="4", role="tool", content="", metadata={LOADED_TOOLS_KEY: "d"}),
    ]

    def names(how: ToolSelectionSettings, messages: Sequence[Message]) -> list[str]:
        return [one.name for one in select_tools(specs, own, how, messages)]

    assert names(ToolSelectionSettings(discovery=True), reported) == ["b", *META, "c", "a", "read_result"]
    assert names(ToolSelectionSettings(), reported) == ["a", "b", "c", "d", "read_result"]
    assert names(ToolSelectionSettings(discovery=True, always=("mcp:*",)), []) == ["d", *META]
    assert [one.name for one in select_tools(specs, (), ToolSelectionSettings(discovery=True), [])] == [
        "a",
        "b",
        "c",
        "d",
    ]
    assert missing_tools(specs, own, reported) == ("zz",)
    assert [
        selection_settings(call_request, None, 4, 3).discovery for call_request in ("auto", "on", "off")
    ] == [
        True,
        True,
        False,
    ]
    assert not selection_settings("auto", None, 3, 3).discovery
