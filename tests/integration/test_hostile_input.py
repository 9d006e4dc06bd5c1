"""What a hostile reviewer found: bad files, bad models and bad clients, with all workers on a real server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import trunkline
from trunkline.abc.models import Call, ModelAdapter, Reasoning, Text
from trunkline.messages.conversation import ToolCall
from trunkline.messages.tools import ToolSchema
from trunkline.messages.turn import ToolEnded
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio


class Models:
    """A plugin that brings a scripted model."""

    def __init__(self, model: ModelAdapter) -> None:
        self.model = model

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]


@asynccontextmanager
async def talking_to(model: ScriptedModel, home: Path | None = None, **more: Any) -> AsyncIterator[Platform]:
    async with platform(
        home, plugins=[Models(model)], config={"runtime.provider_adapter": model.name}, **more
    ) as p:
        yield p


# Files that are broken ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"\xff\xfe[[[", b"a" + b".a" * 60_000 + b" = 1", b"x = " + b"[" * 60_000, b"x = " + b"9" * 9_999],
    ids=["no text", "a key of many parts", "arrays in arrays", "many digits"],
)  # fmt: skip
async def test_preferences_that_cannot_be_read_are_a_reported_gap(tmp_path: Path, content: bytes) -> None:
    """PA-F43: the turn goes on without them. Agents may write them, so they hold no worker up either."""
    async with talking_to(ScriptedModel(["Hello."]), tmp_path) as running:
        (running.home.memory / "preferences.toml").write_bytes(content)
        assert (await running.say("hi")).text == "Hello."


@pytest.mark.parametrize("content", [b"\xff\xfe[[[", b"[[[", b"tools = 3\n"])
async def test_a_broken_block_can_be_talked_to_without_tools_and_harms_no_other(
    tmp_path: Path, content: bytes
) -> None:
    """Its block.toml is no text, no TOML or of wrong types: it says ERROR, has no tools, and the others are listed."""
    model = ScriptedModel(["Hello."])
    async with talking_to(model, tmp_path) as running:
        await running.gateway.create_block("garden")
        (running.home.memory / "blocks/garden/block.toml").write_bytes(content)
        states = {block.name: block.pulse.status for block in await running.gateway.blocks()}
        assert states == {"main": "SLEEPING", "garden": "ERROR"}
        assert (await running.say("hi", block="garden")).text == "Hello."
        assert model.requests[-1].tools == ()


# Models that are broken --------------------------------------------------------------------------------------


async def test_half_characters_of_a_model_are_replaced() -> None:
    """No message can carry a lone surrogate: in text it becomes a question mark; the turn ended as internal."""
    model = ScriptedModel([[Reasoning("\ud800"), Text("a\ud800b")]])
    async with talking_to(model) as running:
        assert (await running.say("hi")).text == "a?b"


async def test_a_call_that_no_message_can_carry_is_refused_and_the_model_told_why() -> None:
    """Half a character in a call's arguments: the tool is not run, the model may try again, and the turn goes on."""
    call = ToolCall(id="1", name="read_file", arguments={"path": "\ud800"})
    async with talking_to(ScriptedModel([[Text("Wait. "), Call(call)], "Sorry."])) as running:
        answer = await running.say("hi")
    (told,) = [event for event in answer.events if isinstance(event, ToolEnded)]
    assert told.error and "half a character" in told.output and "The tool was not run." in told.output
    assert (answer.ended.code, answer.text) == (None, "Wait. Sorry.")


# Clients that are odd ----------------------------------------------------------------------------------------


async def test_a_tool_of_the_client_stands_in_for_ours_of_the_same_name() -> None:
    """Two tools of one name are an error to many providers, so the model is offered the one that is called."""
    model = ScriptedModel(["Hello."])
    theirs = ToolSchema(name="read_file", description="Theirs.", parameters={"type": "object"})
    async with talking_to(model) as running:
        await running.say("hi", client_tools=(theirs, theirs), history=())
    offered = [tool for tool in model.requests[-1].tools if tool.name == "read_file"]
    assert offered == [theirs]
