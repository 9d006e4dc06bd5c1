"""Pictures: the choice of the vision model, and the error without one. Over the bus, as a tool asks."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

import trunkline
from trunkline._util.untrusted_text import unwrap_tool_result
from trunkline.api.model import ModelAdapter
from trunkline.contracts.conversations.messages import Image, Message
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.contracts.models.prices import Price, Rate
from trunkline.contracts.tools.messages import CallTool, ToolOutcome
from trunkline.contracts.tools.subjects import CALL_TOOL
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_bus import new_id

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2_000  # more than a message on the bus may hold


class Blind(ScriptedModel):
    """A vendor that takes no pictures."""

    sees = False


class Models:
    """A vendor that sees, and one that does not."""

    def __init__(self) -> None:
        self.seeing = ScriptedModel(lambda request: "A harbour.", name="seeing")
        self.blind = Blind(lambda request: "Nothing.", name="blind")

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.seeing, self.blind]


@asynccontextmanager
async def looking(**config: Any) -> AsyncIterator[tuple[Platform, Models]]:
    models = Models()
    async with platform(plugins=[models], config={"runtime.provider_adapter": "blind", **config}) as running:
        running.home.workspace("main").mkdir(parents=True, exist_ok=True)
        (running.home.workspace("main") / "a.png").write_bytes(PNG)
        yield running, models


async def describe(running: Platform, path: str = "a.png") -> ToolOutcome:
    call = CallTool(
        call=new_id("call"), name="describe_image", arguments={"image_path": path, "question": "What is it?"},
        block="main", conversation="conv_1", turn="turn_1", actor="owner",
    )  # fmt: skip
    async with running.bus.call_streaming(CALL_TOOL, call, idle_timeout=60) as replies:
        async for reply in replies:
            if isinstance(reply, ToolOutcome):
                return reply
    raise AssertionError("no outcome")


async def prefer(running: Platform, path: str, text: str) -> None:
    await running.bus.call(MEMORY_WRITE, WriteMemory(path=path, content=text, actor="owner"))


async def test_MN_F16_the_vision_model_describes_a_picture() -> None:
    """The model is that of the block, else that of the preferences; it gets the whole picture, of any size."""
    async with looking() as (running, models):
        await prefer(running, "preferences.toml", '[models]\nvision = "seeing/all"\n')
        outcome = await describe(running)
        assert (outcome.status, unwrap_tool_result(outcome.output)) == ("ok", "A harbour.")
        await prefer(running, "blocks/main/block.toml", '[models]\nvision = "seeing/own"\n')
        assert (await describe(running)).status == "ok"
        first, second = models.seeing.requests
        assert (first.model, second.model, first.purpose, first.tools) == ("all", "own", "vision", ())
        assert first.messages[0].images == (Image(media_type="image/png", data=PNG),)
        assert models.blind.requests == []


async def test_MN_F16_without_a_vision_model_the_error_names_the_setting() -> None:
    """A block's ordinary model is not taken for one that sees, and neither is an adapter that takes no pictures."""
    async with looking(**{"adapters.engine.url": "http://127.0.0.1:1"}) as (running, models):
        outcome = await describe(running)
        assert outcome.status == "error"
        assert "No vision model is configured" in outcome.output and 'vision = "openai/' in outcome.output
        assert "block.toml" in outcome.output
        for adapter in ("blind", "offline", "engine"):
            await prefer(
                running, "blocks/main/block.toml", f'vision_model = "{adapter}/x"\n'
            )  # the former key
            outcome = await describe(running)
            assert outcome.status == "error"
            assert (
                f"model {adapter}/x cannot be used: the adapter {adapter} takes no pictures" in outcome.output
            )
            assert (
                "No vision model is configured" not in outcome.output
                and 'vision = "openai/' in outcome.output
            )
        assert models.blind.requests == models.seeing.requests == []


def test_a_picture_counts_before_it_is_asked_about() -> None:
    """A question that has a budget is refused when its picture alone could cost more."""
    rate = Rate.from_price(Price(input=1.0, output=1.0))
    plain = Message(id="m", role="user", content="x")
    seen = Message(id="m", role="user", content="x", images=(Image(media_type="image/png", data=b""),))
    assert rate.affordable_tokens((plain,), 1_000) == 991
    assert rate.affordable_tokens((seen,), 1_000) == 0
    assert rate.affordable_tokens((seen,), 10_000) == 3_991
