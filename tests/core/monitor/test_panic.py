"""Panic where turns run: they end, and no model is asked until it is released (CC-F17, C31)."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

import trunkline
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.latch import Latch
from trunkline.messages.panic import Panic
from trunkline.subjects import PANIC
from trunkline.testing.platform import platform
from trunkline.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

SETTINGS = {"runtime.provider_adapter": "scripted"}


class Models:
    """A plugin that brings a scripted model."""

    def __init__(self) -> None:
        self.model = ScriptedModel()

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[trunkline.ModelAdapter]:
        return [self.model]


async def test_turns_end_and_no_model_is_asked(tmp_path: Path) -> None:
    """By word over the bus, as other machines hear it; a message that comes meanwhile is told why; it lasts over a
    restart, and the release is heard too."""
    home, models = tmp_path / "home", Models()
    async with platform(home, plugins=[models], config=SETTINGS) as running:
        accepted = await running.send("slow:2000:20")
        events = []
        with anyio.fail_after(60):
            async for event in running.gateway.watch(accepted.conversation, accepted.turn):
                events.append(event)
                if len(events) == 3:
                    await running.bus.publish(PANIC, Panic(on=True, by="somebody"))
        assert events[-1].reason == "cancelled"
        assert Latch(home).read().by == "somebody"
        asked = len(models.model.requests)
        assert (await running.say("say:no")).ended.code == ErrorCode.PANIC
        with pytest.raises(trunkline.CompletionError) as refused:
            await trunkline.BlockModel(running.bus, "main", actor="owner").complete("say:no")
        assert (refused.value.code, str(refused.value)) == ("panic", FIXED_SENTENCES[ErrorCode.PANIC])
        assert len(models.model.requests) == asked
    async with platform(home, plugins=[models], config=SETTINGS) as running:
        assert (await running.say("say:no")).ended.code == ErrorCode.PANIC
        await running.bus.publish(PANIC, Panic(on=False, by="somebody"))
        with anyio.fail_after(60):
            await Latch(home).until(False)
        assert (await running.say("say:yes")).text == "yes"
