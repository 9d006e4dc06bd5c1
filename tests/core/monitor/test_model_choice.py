"""Which model answers: by request, conversation, block, owner and purpose; changes act on the next message (SWAP-2)."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import trunkline
from trunkline._util.toml import SettingsFileError, read_settings
from trunkline.api.model import BlockCompleter, ModelAdapter, ModelInfo
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.blocks.model_choice import CHAT, preferred_model
from trunkline.contracts.blocks.preferences import Preferences
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.errors import ErrorCode
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_bus import RemoteFault

pytestmark = pytest.mark.anyio


class ListingModel(ScriptedModel):
    """A vendor that lists its models, and counts how often it is asked for them."""

    listed = 0

    async def models(self) -> tuple[ModelInfo, ...]:
        self.listed += 1
        return tuple(ModelInfo(id=id, context_window=1000) for id in ("large", "small", "tiny:latest"))


class UnlistedModel(ScriptedModel):
    """A vendor that does not list its models."""

    async def models(self) -> tuple[ModelInfo, ...]:
        return ()


class Models:
    def __init__(self) -> None:
        self.listing = ListingModel(lambda request: f"{request.model or 'default'}", name="listing")
        self.other = UnlistedModel(lambda request: f"other {request.model}", name="other")
        self.preferred: list[str] = []

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.listing, self.other]

    @trunkline.hookimpl
    def trunkline_select_model(self, turn: trunkline.TurnInfo, preference: str) -> str | None:
        self.preferred.append(preference)
        return None


@asynccontextmanager
async def choosing(home: Path | None = None, **config: Any) -> AsyncIterator[tuple[Platform, Models]]:
    models = Models()
    settings = {"runtime.provider_adapter": "listing", **config}
    async with platform(home, plugins=[models], config=settings) as running:
        yield running, models


async def write(running: Platform, path: str, text: str) -> None:
    await running.bus.call(MEMORY_WRITE, WriteMemory(path=path, content=text, actor="owner"))


async def say(running: Platform, conversation: str | None = None, **more: Any) -> tuple[str, str]:
    """Return the answer and the conversation."""
    accepted = await running.gateway.send(SendMessage(content="hello", conversation=conversation, **more))
    answer = await running.answer(accepted)
    return answer.text, accepted.conversation


async def test_SWAP_2_a_purpose_has_its_own_model_which_acts_at_once() -> None:
    """The block's table comes before the owner's; a purpose without a model takes that of the block's answers."""
    async with choosing() as (running, _):
        ask = BlockCompleter(running.bus, "main").complete

        async def answering(purpose: str) -> str:
            return (await ask("x", purpose=purpose)).text

        assert await answering("summary") == "default"
        await write(running, "preferences.toml", 'model = "large"\n[models]\nsummary = "small"\n')
        assert (await answering("summary"), await answering("learn")) == ("small", "large")
        await write(running, "blocks/main/block.toml", 'model = "other/x"\n[models]\nsummary = "other/y"\n')
        assert (await answering("summary"), await answering("learn")) == ("other y", "other x")
        assert (await ask("x", purpose="summary", model="listing/large")).text == "large"
        assert (await say(running))[0] == "other x"


async def test_a_conversation_keeps_its_model_without_the_bus(tmp_path: Path) -> None:
    """The choice acts on the next message, survives a restart and the deletion of ``bus/``, and yields to a request
    that names a model. A plugin's choice does not override it."""
    async with choosing(tmp_path) as (running, models):
        text, conversation = await say(running)
        assert text == "default"
        answerer = await running.gateway.choose_model(conversation, "small")
        assert (answerer.label, answerer.chosen) == ("listing/small", True)
        models.preferred.clear()
        assert (await say(running, conversation))[0] == "small"
        assert models.preferred == []
        assert (await say(running, conversation, model="other/z"))[0] == "other z"
        assert (await say(running))[0] == "default"  # another conversation
    for file in sorted((tmp_path / "bus").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    async with choosing(tmp_path) as (running, models):
        assert (await running.gateway.answerer(conversation=conversation)).label == "listing/small"
        assert (await say(running, conversation))[0] == "small"
        assert not (await running.gateway.choose_model(conversation, None)).chosen
        assert (await say(running, conversation))[0] == "default"


async def test_a_model_that_cannot_be_had_is_refused_at_once() -> None:
    """The refusal names the nearest models; nothing is stored. A vendor without a list is asked by the message."""
    async with choosing() as (running, models):
        _, conversation = await say(running)
        for wrong, near in (
            ("smal", "listing/small"),
            ("listing/larg", "listing/large"),
            ("\x1b[1m", "name of"),
        ):
            with pytest.raises(RemoteFault) as refused:
                await running.gateway.choose_model(conversation, wrong)
            assert refused.value.code == ErrorCode.INVALID_REQUEST
            assert near in str(refused.value.message)
        assert models.listing.listed == 1
        assert not (await running.gateway.answerer(conversation=conversation)).chosen
        for right in ("other/anything", "tiny", "listing"):
            await running.gateway.choose_model(conversation, right)
        with pytest.raises(RemoteFault):
            await running.gateway.choose_model("conv_" + "a" * 26, "small")
        listed = {one.adapter: one.names for one in await running.gateway.models()}
        assert listed["listing"] == ("listing/large", "listing/small", "listing/tiny:latest")


async def test_two_conversations_change_their_models_at_the_same_time() -> None:
    """No choice leaks into another conversation."""
    async with choosing() as (running, _):
        talks = [(await say(running))[1] for _ in range(4)]
        async with anyio.create_task_group() as tasks:
            for number, talk in enumerate(talks):
                tasks.start_soon(running.gateway.choose_model, talk, ("large", "small")[number % 2])
        assert [(await say(running, talk))[0] for talk in talks] == ["large", "small"] * 2


def test_a_purpose_that_looks_like_a_typing_error_is_refused() -> None:
    """A text must not go to another model than its author meant."""
    for table, hint in (("sumary", "summary"), ("chat", "`model`"), ("transcripe", "transcribe")):
        with pytest.raises(SettingsFileError, match=hint):
            read_settings("preferences.toml", f'[models]\n{table} = "a/b"\n', Preferences)
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"models": {table: "a/b"}}, BlockConfig)
    assert msgspec.convert({"models": {"my-plugin": "a/b"}}, BlockConfig).models == {"my-plugin": "a/b"}


def test_the_former_key_of_the_vision_model_still_counts() -> None:
    """``vision_model`` is now ``models.vision``, which wins where a file has both."""
    old = read_settings("preferences.toml", 'vision_model = "a/old"\n', Preferences)
    both = read_settings("block.toml", 'vision_model = "a/old"\n[models]\nvision = "a/new"\n', BlockConfig)
    assert (old.models, both.models) == ({"vision": "a/old"}, {"vision": "a/new"})


def test_the_setting_that_decided_is_told() -> None:
    """One definition of the order serves turns, completions and the command that explains it."""
    block = BlockConfig(model="b/chat", models={"summary": "b/s"})
    owner = Preferences(model="o/chat", models={"summary": "o/s", "route": "o/r"})
    told = {
        purpose: (found.model, found.source)
        for purpose in (CHAT, "summary", "route", "learn", "vision")
        for found in [preferred_model(purpose, block, owner)]
    }
    assert told == {
        CHAT: ("b/chat", "model in block.toml"),
        "summary": ("b/s", "models.summary in block.toml"),
        "route": ("o/r", "models.route in preferences.toml"),
        "learn": ("b/chat", "model in block.toml"),
        "vision": (None, ""),
    }
    assert preferred_model(CHAT, block, owner, "c/x").source == "/model in the conversation"
