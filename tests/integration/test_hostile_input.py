"""Cases found by a hostile reviewer: bad files, bad models and bad clients, with all workers on a real server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.models.adapter import Call, ModelAdapter, Reasoning, Text
from trunkline.contracts.tools.messages import ToolSchema
from trunkline.contracts.turns.feed_messages import ToolEnded
from trunkline.testing.platform import Platform, TurnAnswer, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_bus import RemoteFault

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
async def test_unreadable_preferences_send_no_text_to_a_model(tmp_path: Path, content: bytes) -> None:
    """They may say which model is given a text, so a message is refused with the file's name; no worker is held up."""
    model = ScriptedModel(["Hello."])
    async with talking_to(model, tmp_path) as running:
        (running.home.memory / "preferences.toml").write_bytes(content)
        await refuses(running, "main", "preferences.toml")
        assert model.requests == []
        (running.home.memory / "preferences.toml").write_text("")
        assert (await accepted(running, "main")).text == "Hello."


SLIPS = {
    "no text": b"\xff\xfe[[[",
    "no TOML": b'model = "local/small"\nenabled = fals\n',
    "a wrong type": b'\ntools = 3\nmodel = "local/small"\n',
    "an unknown key": b"enabeld = false\n",
    "a wrong table": b"[permissions]\napprovals = 'never'\n",
}
WHERE = {"no TOML": "line 2", "a wrong type": "line 2", "an unknown key": "line 1", "a wrong table": "line 2"}


@pytest.mark.parametrize("mistake", SLIPS)
async def test_mb_f3_a_block_with_a_broken_file_accepts_no_message(tmp_path: Path, mistake: str) -> None:
    """A typing error must not enable a block, nor send its text to another model: each message is refused with file
    and line, the block is shown as broken, and the others continue."""
    model = ScriptedModel(["Hello."])
    async with talking_to(model, tmp_path) as running:
        await running.gateway.create_block("garden")
        (running.home.memory / "blocks/garden/block.toml").write_bytes(SLIPS[mistake])
        await refuses(running, "garden", "blocks/garden/block.toml", WHERE.get(mistake, ""))
        states = {
            block.name: (block.pulse.status, bool(block.problem)) for block in await running.gateway.blocks()
        }
        assert states == {"main": ("SLEEPING", False), "garden": ("ERROR", True)}
        assert model.requests == []
        assert (await running.say("hi")).text == "Hello."


async def test_a_wrong_key_of_the_preferences_is_reported_and_others_apply(
    tmp_path: Path,
) -> None:
    """``modle`` is a key of neither the platform nor a plugin; plugins' keys there are accepted."""
    model = ScriptedModel(["Hello."])
    async with talking_to(model, tmp_path) as running:
        (running.home.memory / "preferences.toml").write_text("[learning]\nenabled = true\n")
        assert (await running.say("hi")).text == "Hello."
        (running.home.memory / "preferences.toml").write_text('# mine\nmodle = "local/small"\n')
        await refuses(running, "main", "preferences.toml, line 2", "Did you mean model?")


async def test_a_turn_that_waits_when_its_file_breaks_asks_no_model(tmp_path: Path) -> None:
    """The message was accepted before the slip: the turn ends with an error, and its text goes nowhere."""
    model = ScriptedModel(["Hello."])
    config = {"runtime.provider_adapter": model.name}
    async with platform(
        tmp_path, plugins=[Models(model)], config=config, workers=("gateway", "memory", "tools")
    ) as waiting:
        sent = await waiting.send("hi")
    (tmp_path / "memory/blocks/main/block.toml").write_text("enabled = fals\n")
    async with talking_to(model, tmp_path) as running:
        assert (await running.answer(sent)).ended.code == "not_sent"
        assert model.requests == []


async def refuses(running: Platform, block: str, *said: str) -> None:
    """A message is refused, once the edit is seen, with these words."""
    with anyio.fail_after(60):
        while True:
            try:
                await running.say("hi", block=block)
            except RemoteFault as fault:
                assert fault.code == "conflict" and all(words in fault.message for words in said), (
                    fault.message
                )
                return
            await anyio.sleep(0.05)


async def accepted(running: Platform, block: str) -> TurnAnswer:
    """Return the answer, once the repaired file is read."""
    with anyio.fail_after(60):
        while True:
            try:
                return await running.say("hi", block=block)
            except RemoteFault:
                await anyio.sleep(0.05)


# Models that are broken --------------------------------------------------------------------------------------


async def test_lone_surrogates_of_a_model_are_replaced() -> None:
    """No message can carry a lone surrogate: in text it becomes a question mark; the turn ended as internal."""
    model = ScriptedModel([[Reasoning("\ud800"), Text("a\ud800b")]])
    async with talking_to(model) as running:
        assert (await running.say("hi")).text == "a?b"


async def test_a_call_too_large_for_a_message_is_refused_with_a_reason() -> None:
    """The call's arguments contain half a character: the tool is not run, the model may try again, and the turn
    continues."""
    call = ToolCall(id="1", name="read_file", arguments={"path": "\ud800"})
    async with talking_to(ScriptedModel([[Text("Wait. "), Call(call)], "Sorry."])) as running:
        answer = await running.say("hi")
    (reported,) = [event for event in answer.events if isinstance(event, ToolEnded)]
    assert (
        reported.error
        and "half a character" in reported.output
        and "The tool was not run." in reported.output
    )
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
